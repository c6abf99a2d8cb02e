# SPDX-License-Identifier: MIT
# The image for both architectures: BLOOMERY_VERSION=1.0.0 docker buildx bake
# scripts/release.sh prints the values of a release. Without a builder for arm64 of its own, buildx
# compiles under qemu: docker run --privileged --rm tonistiigi/binfmt --install arm64
variable "BLOOMERY_VERSION" { default = "" }
variable "BLOOMERY_COMMIT" { default = "" }
variable "BLOOMERY_MAINTAINER" { default = "" }
variable "BLOOMERY_HOMEPAGE" { default = "" }
variable "IMAGE" { default = "bloomery" }

target "default" {
  context   = "."
  platforms = ["linux/amd64", "linux/arm64"]
  tags      = BLOOMERY_VERSION == "" ? ["${IMAGE}:latest"] : ["${IMAGE}:${BLOOMERY_VERSION}", "${IMAGE}:latest"]
  args = {
    BLOOMERY_VERSION    = BLOOMERY_VERSION
    BLOOMERY_COMMIT     = BLOOMERY_COMMIT
    BLOOMERY_MAINTAINER = BLOOMERY_MAINTAINER
    BLOOMERY_HOMEPAGE   = BLOOMERY_HOMEPAGE
  }
}
