#include "search/journal.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::search {
namespace {

namespace fs = std::filesystem;

class JournalTest : public ::testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }

  std::string written(int lines) {
    fs::remove(path_);
    Journal journal(path_);
    for (int i = 0; i < lines; ++i) {
      journal.append({{"event", "result"}, {"trial", i}, {"score", 0.1 * i}});
    }
    return read_file(path_);
  }

  testing::TempDir folder_;
  fs::path path_ = folder_.path() / "journal";
};

TEST_F(JournalTest, KeepsWhatWasAppended) {
  written(3);
  const Journal journal(path_);
  ASSERT_EQ(journal.entries().size(), 3u);
  EXPECT_EQ(journal.entries()[2]["trial"], 2);
  EXPECT_EQ(journal.entries()[1]["score"], 0.1);
  EXPECT_FALSE(journal.was_torn());
}

TEST_F(JournalTest, DropsALastLineThatIsCutAnywhereAndGoesOn) {
  const std::string whole = written(3);
  const size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  for (size_t size = last; size < whole.size(); ++size) {
    write(whole.substr(0, size));
    {
      Journal journal(path_);
      ASSERT_EQ(journal.entries().size(), 2u) << size;
      EXPECT_EQ(journal.was_torn(), size > last) << size;
      journal.append({{"event", "result"}, {"trial", 2}, {"score", 0.2}});
    }
    EXPECT_EQ(read_file(path_), whole) << size;
  }
}

TEST_F(JournalTest, DropsALastLineOfZeros) {
  const std::string whole = written(2);
  write(whole + std::string(40, '\0'));
  EXPECT_EQ(Journal(path_).entries().size(), 2u);
  EXPECT_EQ(read_file(path_), whole);
}

TEST_F(JournalTest, RefusesDamageBeforeTheLastLine) {
  const std::string whole = written(3);
  const size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  for (size_t i = 0; i < last - 1; ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_THROW(parse_journal(damaged, "journal"), Error) << i;
  }
}

TEST_F(JournalTest, RefusesALineThatWasTakenOut) {
  const std::string whole = written(3);
  const size_t first = whole.find('\n') + 1;
  try {
    parse_journal(whole.substr(first), "journal");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData);
    EXPECT_NE(std::string(error.what()).find("journal:1: "), std::string::npos) << error.what();
  }
}

// It is made with its first line, so that none was being written when the machine stopped.
TEST_F(JournalTest, RefusesATextWithoutAGoodLine) {
  const std::string line = written(1);
  for (const std::string& text : {line.substr(0, 1), line.substr(0, line.size() - 1),
                                  line.substr(0, 20) + "~" + line.substr(21), std::string("\n"),
                                  std::string(40, '\0'), std::string("no journal\n")}) {
    write(text);
    const auto error = testing::failure(ExitCode::kBadData, [&] { Journal{path_}; });
    EXPECT_NE(std::string(error.what()).find("journal:1: "), std::string::npos) << error.what();
    EXPECT_FALSE(error.advice().empty());
    EXPECT_EQ(read_file(path_), text) << "it was changed";
  }
}

TEST_F(JournalTest, IsMadeWithItsFirstLineOrNotAtAll) {
  {
    Journal journal(path_);
    EXPECT_FALSE(fs::exists(path_));
    set_failpoints("*:eio:2");
    EXPECT_THROW(journal.append({{"event", "begin"}}), Error);
    set_failpoints("");
    EXPECT_FALSE(fs::exists(path_));
    journal.append({{"event", "begin"}});
    EXPECT_EQ(read_journal(path_).entries.size(), 1u);
    journal.append({{"event", "result"}});
  }
  EXPECT_EQ(Journal(path_).entries().size(), 2u);
  write("");  // as an earlier release left it that was killed at once
  {
    Journal journal(path_);
    EXPECT_TRUE(journal.entries().empty());
    journal.append({{"event", "begin"}});
  }
  EXPECT_EQ(Journal(path_).entries().size(), 1u);
}

TEST_F(JournalTest, TakesBackWhatAFullDiskLetItWrite) {
  const std::string whole = written(2);
  {
    Journal journal(path_);
    set_failpoints("journal.write:short:1;journal.write:enospc:2");
    EXPECT_THROW(journal.append({{"event", "result"}, {"trial", 2}}), Error);
    set_failpoints("journal.fsync:eio");
    EXPECT_THROW(journal.append({{"event", "result"}, {"trial", 2}}), Error);
    set_failpoints("");
    EXPECT_EQ(journal.entries().size(), 2u);
  }
  EXPECT_EQ(read_file(path_), whole);
}

TEST_F(JournalTest, RefusesALineThatIsNoEvent) {
  EXPECT_EQ(parse_journal("", "journal").entries.size(), 0u);
  EXPECT_THROW(parse_journal("0000000000000000 {}\n", "journal"), Error);
  EXPECT_THROW(parse_journal("0000000000000000 {}\nx\n", "journal"), Error);
}

}  // namespace
}  // namespace stretto::search
