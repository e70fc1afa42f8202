#include "base/named_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <future>
#include <string>

#include "base/descriptor.h"
#include "base/file.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using testing::failure;
using testing::TempDir;

mode_t mode_of_file(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status.st_mode;
}

size_t num_entries(const fs::path& folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++count;
  return count;
}

ino_t inode_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_ino;
}

TEST(NamedOutput, NeverTakesThePlaceOfWhatThisProcessReads) {
  const TempDir folder;
  const fs::path text = folder.write("text", "what is scored");
  fs::create_hard_link(text, folder.path() / "same");
  fs::create_symlink(text, folder.path() / "link");
  struct stat status {};
  ASSERT_EQ(::stat(text.c_str(), &status), 0);
  keep_from_outputs(status);
  for (const char* name : {"text", "same", "link"}) {
    const Error error =
        failure(ExitCode::kUsage, [&] { write_named_output(folder.path() / name, "numbers"); });
    EXPECT_NE(error.message().find("is read by this command"), std::string::npos);
  }
  EXPECT_EQ(read_file(text), "what is scored");
  write_named_output(folder.path() / "other", "numbers");
  EXPECT_EQ(read_file(folder.path() / "other"), "numbers");
}

TEST(NamedOutput, ReplacesARegularFileAndKeepsItsMode) {
  const TempDir dir;
  write_named_output(dir / "new", "text");
  EXPECT_EQ(read_file(dir / "new"), "text");
  ::chmod((dir / "new").c_str(), 0640);
  const ino_t before = inode_of(dir / "new");
  write_named_output(dir / "new", "other");
  EXPECT_EQ(read_file(dir / "new"), "other");
  EXPECT_NE(inode_of(dir / "new"), before);
  EXPECT_EQ(mode_of_file(dir / "new") & 07777, 0640u);
  EXPECT_EQ(num_entries(dir.path()), 1u);
}

TEST(NamedOutput, KeepsTheAccessListOfARegularFile) {
  const TempDir dir;
  const auto path = dir.write("file", "old");
  // Version 2; owner rw-, user 12345 r--, group ---, mask r--, others ---.
  constexpr std::array<unsigned char, 44> kList{
      2, 0,  0,   0,   1,   0,   6,  0, 255, 255, 255, 255, 2,   0,  4,
      0, 57, 48,  0,   0,   4,   0,  0, 0,   255, 255, 255, 255, 16, 0,
      4, 0,  255, 255, 255, 255, 32, 0, 0,   0,   255, 255, 255, 255};
  constexpr const char* kName = "system.posix_acl_access";
  if (::setxattr(path.c_str(), kName, kList.data(), kList.size(), 0) != 0) {
    GTEST_SKIP() << "the file system has no access lists";
  }
  write_named_output(path, "new");
  std::array<unsigned char, 44> found{};
  EXPECT_EQ(::getxattr(path.c_str(), kName, found.data(), found.size()), ssize_t{44});
  EXPECT_EQ(found, kList);
}

TEST(NamedOutput, FollowsLinksAndMakesTheTargetOfOneThatLeadsNowhere) {
  const TempDir dir;
  dir.write("folder/target", "old");
  fs::create_symlink("folder/target", dir / "link");
  fs::create_symlink(dir / "link", dir / "second");
  write_named_output(dir / "second", "new");
  EXPECT_EQ(read_file(dir / "folder/target"), "new");
  fs::create_symlink("folder/missing", dir / "dangling");
  write_named_output(dir / "dangling", "made");
  EXPECT_EQ(read_file(dir / "folder/missing"), "made");
  for (const char* link : {"link", "second", "dangling"}) {
    EXPECT_TRUE(S_ISLNK(mode_of_file(dir / link))) << link;
  }
  fs::create_symlink("round", dir / "round");
  failure(ExitCode::kIo, [&] { write_named_output(dir / "round", "x"); });
}

TEST(NamedOutput, WritesThroughADevice) {
  const TempDir dir;
  fs::path device = dir / "null";
  const bool made = ::mknod(device.c_str(), S_IFCHR | 0666, makedev(1, 3)) == 0 &&
                    Descriptor(::open(device.c_str(), O_WRONLY | O_CLOEXEC));
  if (!made && ::geteuid() == 0) GTEST_SKIP() << "root could lose /dev/null, and has no other one";
  if (!made) device = "/dev/null";  // that nobody else can rename
  {
    NamedOutput output(device);
    output.write("header and text");
    output.write_at(0, "HEADER");
    output.publish();
  }
  EXPECT_TRUE(S_ISCHR(mode_of_file(device)));
  if (::access("/dev/full", W_OK) == 0) {
    const Error full = failure(ExitCode::kIo, [] { write_named_output("/dev/full", "x"); });
    EXPECT_NE(std::string(full.what()).find("/dev/full"), std::string::npos) << full.what();
    EXPECT_TRUE(S_ISCHR(mode_of_file("/dev/full")));
  }
}

TEST(NamedOutput, KnowsWhichPathsAreRegularFiles) {
  const TempDir dir;
  write_named_output(dir / "file", "old");
  fs::create_symlink("file", dir / "link");
  for (const char* name : {"file", "link", "not_there_yet"}) {
    EXPECT_TRUE(is_file_output(dir / name)) << name;
  }
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  fs::create_symlink("/dev/stdout", dir / "stdout");
  for (const fs::path& path : {dir / "pipe", dir / "stdout", fs::path("/dev/stdout"),
                               fs::path("/dev/fd/1"), fs::path("/dev/null"), dir / "."}) {
    EXPECT_FALSE(is_file_output(path)) << path;
  }
}

TEST(NamedOutput, WritesIntoAPipeForItsReader) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  auto reader = std::async(std::launch::async, [&] {
    const Descriptor pipe(::open((dir / "pipe").c_str(), O_RDONLY | O_CLOEXEC));
    std::string text;
    std::array<char, 64> buffer{};
    for (ssize_t count; (count = ::read(pipe.get(), buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<size_t>(count));
    }
    return text;
  });
  NamedOutput output(dir / "pipe");
  output.write("0 rows, then ");
  output.write("rows");
  output.write_at(0, "2");  // a pipe cannot go back; what was written is held until the end
  output.publish();
  EXPECT_EQ(reader.get(), "2 rows, then rows");
  EXPECT_TRUE(S_ISFIFO(mode_of_file(dir / "pipe")));
}

/// Whether one that waits for the pipe's writer sees an end, and not a byte, by what `end` does.
bool reader_sees_end(const fs::path& pipe, const std::function<void()>& end) {
  auto reader = std::async(std::launch::async, [&] {
    const Descriptor file(::open(pipe.c_str(), O_RDONLY | O_CLOEXEC));
    char byte = 0;
    return ::read(file.get(), &byte, 1) == 0;
  });
  for (int i = 0; i < 500; ++i) {  // nothing tells when the reader has begun to wait
    end();
    if (reader.wait_for(std::chrono::milliseconds(10)) == std::future_status::ready) {
      return reader.get();
    }
  }
  const Descriptor rescue(::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  return false;
}

TEST(EndNamedPipes, EndsAPipeThatAnOutputDidNotPublish) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  NamedOutput(dir / "pipe").write("a part");
  EXPECT_TRUE(reader_sees_end(dir / "pipe", end_named_pipes));
  EXPECT_TRUE(S_ISFIFO(mode_of_file(dir / "pipe")));
  end_named_pipes();  // without a reader it waits for none
}

// Its next reader may wait for another program.
TEST(EndNamedPipes, LeavesAPipeAloneThatWasPublished) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  require_output_place(dir / "pipe", "--output");
  const auto open_to_read = [&] {
    return Descriptor(::open((dir / "pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  };
  {
    const Descriptor reader = open_to_read();
    write_named_output(dir / "pipe", "all");
  }
  const Descriptor next = open_to_read();
  end_named_pipes();
  struct pollfd asked {
    .fd = next.get(), .events = POLLIN, .revents = 0
  };
  EXPECT_EQ(::poll(&asked, 1, 0), 0) << "it saw an end";
}

TEST(EndNamedPipes, EndsThoseThatACommandWasToWrite) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  require_output_place(dir / "pipe", "--output");
  require_output_place(dir / "file", "--output");
  EXPECT_TRUE(reader_sees_end(dir / "pipe", end_named_pipes));
  EXPECT_FALSE(fs::exists(dir / "file"));
}

TEST(NamedOutput, WritesToAnOpenDescriptorWhereItStands) {
  const TempDir dir;
  const auto path = dir.write("file", "");
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(::write(file.get(), "first ", 6), 6);
  const std::string number = std::to_string(file.get());
  write_named_output("/dev/fd/" + number, "second ");
  write_named_output("/proc/self/fd/" + number, "third ");
  fs::create_symlink("/dev/fd/" + number, dir / "link");
  write_named_output(dir / "link", "fourth");
  EXPECT_EQ(read_file(path), "first second third fourth");
  const Error closed = failure(ExitCode::kIo, [] { write_named_output("/dev/fd/987654", "x"); });
  EXPECT_NE(std::string(closed.what()).find("/dev/fd/987654"), std::string::npos);
}

TEST(NamedOutput, WritesOverAFileThatAProgramMayWriteInAFolderThatItMayNot) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write into every folder";
  const TempDir dir;
  const auto path = dir.write("folder/file", "a longer text");
  ::chmod((dir / "folder").c_str(), 0555);
  const ino_t before = inode_of(path);
  require_output_place(path, "--output");
  write_named_output(path, "short");
  EXPECT_EQ(read_file(path), "short");
  EXPECT_EQ(inode_of(path), before);
  failure(ExitCode::kIo, [&] { require_output_place(dir / "folder/new", "--output"); });
  ::chmod((dir / "folder").c_str(), 0755);
}

TEST(NamedOutput, LeavesTheOldFileWhereItIsNotPublished) {
  const TempDir dir;
  const auto path = dir.write("file", "old");
  {
    NamedOutput output(path);
    output.write("new");
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(num_entries(dir.path()), 1u);
}

TEST(RequireOutputPlace, NamesWhatIsWrongBeforeTheWork) {
  const TempDir dir;
  require_output_place("", "--output");
  require_output_place(dir / "new", "--output");
  require_output_place("/dev/null", "--output");
  require_output_place("/dev/stdout", "--output");
  const Error missing =
      failure(ExitCode::kIo, [&] { require_output_place(dir / "none/file", "--output"); });
  EXPECT_EQ(missing.message(), "cannot write " + (dir / "none/file").string() + ": no folder " +
                                   (dir / "none").string() +
                                   "\n  make it, or give another file to --output");
  const Error folder = failure(ExitCode::kIo, [&] { require_output_place(dir.path(), "-o"); });
  EXPECT_NE(std::string(folder.what()).find("is a folder"), std::string::npos) << folder.what();
}

}  // namespace
}  // namespace stretto
