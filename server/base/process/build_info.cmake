# SPDX-License-Identifier: MIT
# Writes a C++ source file with the commit and type of the build, unless the file is up to date.
# Usage: cmake -D OUTPUT=FILE -D SOURCES=FOLDER -D BUILD_TYPE=TYPE [-D COMMIT=DIGITS] -P THIS
# Without COMMIT, git determines the commit. A tree without a repository has no commit.
set(modified false)
if(NOT COMMIT)
  # safe.directory lets git read a mounted folder that another user owns. With --no-optional-locks,
  # git status does not lock the index, so it cannot make a git commit fail.
  set(git git -c safe.directory=* --no-optional-locks -C ${SOURCES})
  execute_process(COMMAND ${git} rev-parse --verify --quiet HEAD
    OUTPUT_VARIABLE COMMIT ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(failed)
    set(COMMIT "")
  else()
    execute_process(COMMAND ${git} status --porcelain --untracked-files=no --
        CMakeLists.txt core protocol persistence server
      OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      set(modified true)
    endif()
  endif()
endif()
set(text "// Written by server/base/process/build_info.cmake.
#include \"server/base/process/build_info.h\"

const server::BuildInfo& server::build_info() {
  static constexpr BuildInfo kBuild{\"${COMMIT}\", ${modified}, \"${BUILD_TYPE}\"};
  return kBuild;
}
")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
