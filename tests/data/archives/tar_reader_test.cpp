#include "data/archives/tar_reader.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/data/images/archives.h"
#include "tests/data/memory_stream.h"

namespace stretto::data {
namespace {

using stretto::testing::failure;
using stretto::testing::MemoryStream;
using test::Member;

std::vector<TarMember> members_of(const std::string& bytes) {
  TarReader archive(std::make_unique<MemoryStream>(bytes), "a.tar");
  std::vector<TarMember> members;
  for (TarMember member; archive.next(member);) members.push_back(member);
  return members;
}

TEST(TarReader, SaysWhereTheBytesOfEachMemberAre) {
  // Long names and names that are not ASCII take headers of their own.
  const std::vector<Member> members{{"cat/1.png", std::string(700, 'a')},
                                    {std::string(90, 'x') + "/" + std::string(150, 'y'), "bb"},
                                    {"caf\xC3\xA9/3.png", std::string(512, 'c')},
                                    {"empty", ""},
                                    {"dog/4.png", "dddd"}};
  for (const auto form : {test::TarForm::kPax, test::TarForm::kGnu}) {
    const std::string bytes = test::tar_of(members, form);
    TarReader archive(std::make_unique<MemoryStream>(bytes), "a.tar");
    TarMember member;
    for (const auto& expected : members) {
      ASSERT_TRUE(archive.next(member));
      EXPECT_EQ(member.name, expected.name);
      EXPECT_EQ(member.kind, TarMember::Kind::kFile);
      EXPECT_EQ(member.size, expected.bytes.size());
      EXPECT_EQ(bytes.substr(member.offset, member.size), expected.bytes) << member.name;
      EXPECT_EQ(archive.read_all(member), expected.bytes);
    }
    EXPECT_FALSE(archive.next(member));
  }
}

TEST(TarReader, MembersNeedNotBeRead) {
  const auto members = members_of(test::tar_of({{"a", std::string(100'000, 'a')}, {"b", "b"}}));
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(members[1].name, "b");
}

TEST(TarReader, TellsFoldersAndLinksFromFiles) {
  const auto members = members_of(test::tar_of(
      {{.name = "cat/", .is_folder = true}, {.name = "cat/1.png", .link = "/etc/passwd"}}));
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(members[0].kind, TarMember::Kind::kFolder);
  EXPECT_EQ(members[1].kind, TarMember::Kind::kOther);
  EXPECT_EQ(members[1].other, "a link");
}

TEST(TarReader, AnArchiveThatIsCutOffOrNoneIsAnError) {
  const std::string whole = test::tar_of({{"a", std::string(5000, 'a')}});
  const auto read = [](const std::string& bytes) {
    TarReader archive(std::make_unique<MemoryStream>(bytes), "a.tar");
    for (TarMember member; archive.next(member);) archive.read_all(member);
  };
  for (const std::string& bytes : {whole.substr(0, 3000), std::string(3000, 'x'), std::string()}) {
    const auto error = failure(ExitCode::kBadData, [&] { read(bytes); });
    EXPECT_EQ(std::string(error.what()).find("a.tar: cannot read the tar archive"), 0U)
        << error.what();
  }
}

TEST(TarReader, ADamagedHeaderIsAnErrorInAnyPlace) {
  std::string bytes = test::tar_of({{"a", "a"}, {"cat/1.png", "b"}, {"c", "c"}});
  const size_t header = bytes.rfind("cat/1.png");
  ASSERT_NE(header, std::string::npos);
  bytes[header] = 'C';  // its checksum is another one now
  const auto error = failure(ExitCode::kBadData, [&] { members_of(bytes); });
  EXPECT_EQ(std::string(error.what()).find("a.tar: cannot read the tar archive (Damaged"), 0U)
      << error.what();
}

/// A stream that fails after some bytes.
class FailingStream final : public ByteStream {
 public:
  explicit FailingStream(std::string bytes) : bytes_(std::move(bytes)) {}
  size_t read(char* buffer, size_t /*capacity*/) override {
    if (bytes_.empty()) throw Error(ExitCode::kIo, "the disk is gone", "mend it");
    const size_t size = bytes_.copy(buffer, 512);
    bytes_.erase(0, size);
    return size;
  }

 private:
  std::string bytes_;
};

TEST(TarReader, PassesOnWhatItsStreamThrows) {
  const std::string whole = test::tar_of({{"a", std::string(50'000, 'a')}});
  const auto error = failure(ExitCode::kIo, [&] {
    TarReader archive(std::make_unique<FailingStream>(whole.substr(0, 20'480)), "a.tar");
    for (TarMember member; archive.next(member);) archive.read_all(member);
  });
  EXPECT_STREQ(error.what(), "the disk is gone");
}

}  // namespace
}  // namespace stretto::data
