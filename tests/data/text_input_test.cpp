#include "data/text_input.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/error.h"
#include "data/lines.h"
#include "tests/base/temp_dir.h"

namespace stretto::data {
namespace {

using Texts = std::vector<std::string>;

/// A pipe that the test writes to whenever it wants.
class Pipe {
 public:
  explicit Pipe(const std::filesystem::path& path) : path_(path) {
    if (::mkfifo(path.c_str(), 0600) != 0) throw std::runtime_error("mkfifo");
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);  // both sides: opening never waits
  }
  ~Pipe() { close(); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void send(const std::string& text) const {
    ASSERT_EQ(::write(descriptor_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

class TextInputTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(dir_ / name, std::ios::binary) << bytes;
    return (dir_ / name).string();
  }
  static constexpr const char* kEnd = "\n";  // as no line reads
  static std::string next(TextInput& input) {
    InputLine line;
    return input.next(line) ? line.text : kEnd;
  }
  static Texts all(TextInput& input) {
    Texts texts;
    InputLine line;
    while (input.next(line))
      texts.push_back(line.problem.empty() ? line.text : "! " + line.problem);
    return texts;
  }
  Texts lines_of(const std::string& bytes) const {
    TextInput input({write("text", bytes)});
    return all(input);
  }
  static std::string problem(const std::string& bytes) {
    return "! " + bytes + " bytes; a line may have at most 999,999";
  }
  testing::TempDir dir_;
};

TEST_F(TextInputTest, LinesEndAsThoseOfTheDataRoom) {
  EXPECT_EQ(lines_of(""), Texts{});
  EXPECT_EQ(lines_of("\n"), Texts{""});
  EXPECT_EQ(lines_of("a"), Texts{"a"});
  EXPECT_EQ(lines_of("a\n\nb\n"), (Texts{"a", "", "b"}));
  EXPECT_EQ(lines_of("a\r\nb\r"), (Texts{"a", "b"}));
  EXPECT_EQ(lines_of("a\rb\fc\xE2\x80\xA8"
                     "d\n"),
            Texts{"a\rb\fc\xE2\x80\xA8"
                  "d"});
  EXPECT_EQ(lines_of("\xEF\xBB\xBF"
                     "a\n\xEF\xBB\xBF"
                     "b\n"),
            (Texts{"a",
                   "\xEF\xBB\xBF"
                   "b"}));
}

TEST_F(TextInputTest, EqualsTheLineReaderWhereverReadsEnd) {
  std::string bytes;
  for (int i = 0; i < 40'000; ++i) bytes += std::string(static_cast<size_t>(i % 37), 'x') + "\n";
  LineReader reader(write("text", bytes));
  TextInput input({(dir_ / "text").string()});
  std::string_view expected;
  InputLine line;
  while (reader.next(expected)) {
    ASSERT_TRUE(input.next(line));
    ASSERT_EQ(line.text, expected);
    ASSERT_TRUE(line.place.ends_with("text:" + std::to_string(reader.line_number())));
  }
  EXPECT_FALSE(input.next(line));
}

TEST_F(TextInputTest, ABadLineIsHandedOnWithItsProblemAndTheNextOneIsWhole) {
  EXPECT_EQ(lines_of("a\nb \xFF\xFE\nc\n"), (Texts{"a", "! not UTF-8", "c"}));
  EXPECT_EQ(lines_of(std::string("a\nb\0b\nc", 7)), (Texts{"a", "! a NUL byte", "c"}));
  EXPECT_EQ(lines_of("\xC0\x80"), Texts{"! not UTF-8"});
}

TEST_F(TextInputTest, ALineIsTooLongByItsBytesNotByWhereReadsEnd) {
  const auto longest = static_cast<size_t>(kMaxLineBytes);
  const std::map<size_t, std::string> cases{{longest, std::string(longest, 'x')},
                                            {longest + 1, problem("1,000,000")},
                                            {longest + 70'000, problem("1,069,999")},
                                            {5 * longest, problem("4,999,995")}};
  for (const auto& [size, expected] : cases) {
    const std::string line(size, 'x');
    EXPECT_EQ(lines_of("a\n" + line + "\r\nb\n"), (Texts{"a", expected, "b"})) << size;
    EXPECT_EQ(lines_of(line), Texts{expected}) << size;
  }
}

TEST_F(TextInputTest, SeveralInputsAreOneTextWithTheirOwnLineNumbers) {
  TextInput input({write("a", "1\n2"), write("empty", ""), write("b", "3\n")});
  InputLine line;
  std::string places, text;
  while (input.next(line)) {
    text += line.text;
    places += " " + std::filesystem::path(line.place).filename().string();
  }
  EXPECT_EQ(text, "123");
  EXPECT_EQ(places, " a:1 a:2 b:1");
}

TEST_F(TextInputTest, EveryMissingFileIsToldBeforeTheFirstLine) {
  for (const std::string& path : {dir_.path().string() + "/none", dir_.path().string(),
                                  write("x.zip", "no zip") + ":member"}) {
    EXPECT_THROW(TextInput({write("a", "1\n"), path}), Error) << path;
  }
}

TEST_F(TextInputTest, WithoutMoreInputAPipeIsNotReadyAndItsLinesCanBeAnswered) {
  Pipe pipe(dir_ / "pipe");
  TextInput input({pipe.path()});
  pipe.send("one\n");
  EXPECT_EQ(next(input), "one");
  EXPECT_FALSE(input.ready());
  pipe.send("two\nthr");
  EXPECT_TRUE(input.ready());
  EXPECT_EQ(next(input), "two");
  EXPECT_FALSE(input.ready()) << "half a line must not keep the answer to `two` waiting";
  pipe.send("ee\n");
  EXPECT_TRUE(input.ready());
  EXPECT_EQ(next(input), "three");
}

TEST_F(TextInputTest, WhatHasArrivedIsReady) {
  Pipe pipe(dir_ / "pipe");
  TextInput input({pipe.path()});
  for (int i = 0; i < 100; ++i) pipe.send("line " + std::to_string(i) + "\n");
  for (int i = 0; i < 99; ++i) {
    ASSERT_EQ(next(input), "line " + std::to_string(i));
    ASSERT_TRUE(input.ready()) << i;
  }
  EXPECT_EQ(next(input), "line 99");
  EXPECT_FALSE(input.ready());
}

TEST_F(TextInputTest, TheEndOfAPipeIsReady) {
  Pipe pipe(dir_ / "pipe");
  TextInput input({pipe.path()});
  pipe.send("one\nlast");
  EXPECT_EQ(next(input), "one");
  EXPECT_FALSE(input.ready());
  pipe.close();
  EXPECT_TRUE(input.ready());
  EXPECT_EQ(next(input), "last");
  EXPECT_TRUE(input.ready());
  EXPECT_EQ(next(input), kEnd);
}

TEST_F(TextInputTest, AFileIsAlwaysReadyButAPipeBehindItIsNotOpenedBeforeItsTime) {
  Pipe pipe(dir_ / "pipe");
  pipe.close();  // to open it now would wait for a writer
  TextInput input({write("a", "1\n2\n"), pipe.path()});
  EXPECT_EQ(next(input), "1");
  EXPECT_TRUE(input.ready());
  EXPECT_EQ(next(input), "2");
  EXPECT_FALSE(input.ready());
}

}  // namespace
}  // namespace stretto::data
