// SPDX-License-Identifier: MIT
#include "persistence/files/open_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/error_matcher.h"
#include "tests/support/temp_directory.h"

namespace persistence {
namespace {

using testing::EndsWith;

class OpenFileTest : public testing::Test {
 protected:
  OpenFileTest() {
    std::ofstream(path("file")) << "text";
    std::filesystem::create_directory(path("directory"));
    EXPECT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path("socket").copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::close(socket);
  }

  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  // Opens the file. Returns the error, or "" if there is none.
  static std::string error(const NamedFile& file, int flags, FileKinds kinds) {
    const auto opened = open_file(file, flags, kinds);
    return opened ? "" : opened.error().message;
  }

  const support::TempDirectory directory_;
};

TEST_F(OpenFileTest, OpensARegularFile) {
  for (const auto kinds : {FileKinds::kRegular, FileKinds::kStreams, FileKinds::kStreamsWithWait}) {
    for (const int flags : {O_RDONLY, O_WRONLY, O_RDWR}) {
      const auto opened = open_file(path("file"), flags, kinds);
      ASSERT_TRUE(opened) << opened.error().message;
      EXPECT_EQ(::fcntl(opened->get(), F_GETFD), FD_CLOEXEC);
    }
  }
}

TEST_F(OpenFileTest, CreatesAFileForItsOwner) {
  EXPECT_TRUE(open_file(path("new"), O_WRONLY | O_CREAT));
  struct stat status {};
  ASSERT_EQ(::stat(path("new").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
}

// Without O_NONBLOCK, opening the FIFO would wait forever, because no process has the other end of
// the FIFO open.
TEST_F(OpenFileTest, RejectsIrregularFiles) {
  EXPECT_EQ(error({path("fifo"), "aclfile"}, O_RDONLY, FileKinds::kRegular),
            "ERR can't open '" + path("fifo") + "': it is a FIFO; aclfile needs a regular file");
  EXPECT_EQ(error(path("fifo"), O_RDONLY, FileKinds::kRegular),
            "ERR can't open '" + path("fifo") + "': it is a FIFO, not a regular file");
  EXPECT_EQ(error(path("fifo"), O_WRONLY, FileKinds::kRegular),
            "ERR can't open '" + path("fifo") +
                "': it is a socket or a FIFO without reader, not a regular file");
  EXPECT_EQ(error(path("directory"), O_RDONLY, FileKinds::kRegular),
            "ERR can't open '" + path("directory") + "': it is a directory, not a regular file");
  EXPECT_THAT(error({"/dev/zero"}, O_RDONLY, FileKinds::kRegular),
              is_error("ERR", "character device"));
  EXPECT_NE(error(path("socket"), O_RDONLY, FileKinds::kRegular), "");
}

TEST_F(OpenFileTest, RejectsALinkToAFifo) {
  std::filesystem::create_symlink("fifo", path("link"));
  EXPECT_THAT(error(path("link"), O_RDONLY, FileKinds::kRegular),
              EndsWith("it is a FIFO, not a regular file"));
}

TEST_F(OpenFileTest, NoKindAcceptsDirectoriesAndSockets) {
  for (const auto kinds : {FileKinds::kStreams, FileKinds::kStreamsWithWait}) {
    EXPECT_THAT(error(path("directory"), O_RDONLY, kinds),
                EndsWith("it is a directory, not a regular file, a device or a pipe"));
    EXPECT_NE(error(path("directory"), O_WRONLY, kinds), "");
    EXPECT_NE(error(path("socket"), O_WRONLY, kinds), "");
  }
}

TEST_F(OpenFileTest, WritingAStreamNeedsAReader) {
  EXPECT_EQ(error({"/dev/null"}, O_WRONLY, FileKinds::kStreams), "");
  EXPECT_EQ(
      error({path("fifo"), "logfile"}, O_WRONLY, FileKinds::kStreams),
      "ERR can't open '" + path("fifo") +
          "': it is a socket or a FIFO without reader; logfile needs a regular file, a device "
          "or a pipe");
  const core::Descriptor reader(::open(path("fifo").c_str(), O_RDONLY | O_NONBLOCK));
  const auto writer = open_file(path("fifo"), O_WRONLY, FileKinds::kStreams);
  ASSERT_TRUE(writer) << writer.error().message;
  // The test reads nothing from the FIFO, so the FIFO gets full. The write must then fail instead
  // of blocking.
  const std::string line(4096, 'x');
  ssize_t written = 1;
  while (written > 0) written = ::write(writer->get(), line.data(), line.size());
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(OpenFileTest, ReadingAStreamMayWait) {
  const core::Descriptor writer(::open(path("fifo").c_str(), O_RDWR | O_NONBLOCK));
  ASSERT_EQ(::write(writer.get(), "text", 4), 4);
  const auto reader = open_file(path("fifo"), O_RDONLY, FileKinds::kStreamsWithWait);
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(::fcntl(reader->get(), F_GETFL) & O_NONBLOCK, 0);
  char text[8] = {};
  EXPECT_EQ(::read(reader->get(), text, sizeof text), 4);
}

TEST_F(OpenFileTest, SystemErrorsAreReported) {
  EXPECT_EQ(error({path("absent"), "aclfile"}, O_RDONLY, FileKinds::kRegular),
            "ERR can't open '" + path("absent") + "': No such file or directory");
}

}  // namespace
}  // namespace persistence
