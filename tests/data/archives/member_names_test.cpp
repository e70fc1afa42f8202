#include "data/archives/member_names.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace stretto::data {
namespace {

TEST(MemberNames, APathHasNoPartsThatMeanNothing) {
  std::string fault;
  EXPECT_EQ(member_path("./train//cat/./1.jpg", fault), "train/cat/1.jpg");
  EXPECT_EQ(fault, "");
  EXPECT_EQ(member_path("cat/", fault), "cat");
  EXPECT_EQ(member_path("..cat/1..jpg", fault), "..cat/1..jpg");
  EXPECT_EQ(fault, "");
}

TEST(MemberNames, NamesThatLeadOutOfTheArchiveAreFaults) {
  for (const auto& [name, expected] : std::vector<std::pair<std::string, std::string>>{
           {"/etc/passwd", "its name is absolute"},
           {"../cat/1.jpg", "its name leads out of the archive"},
           {"cat/../../1.jpg", "its name leads out of the archive"},
           {"cat/..", "its name leads out of the archive"},
           {"cat/1\n.jpg", "its name has a control character"},
           {"./", "it has no name"},
           {"", "it has no name"}}) {
    std::string fault;
    member_path(name, fault);
    EXPECT_EQ(fault, expected) << name;
  }
}

TEST(MemberNames, AKeyEndsAtTheFirstDotOfTheLastName) {
  const auto is = [](const char* path, const char* key, const char* field) {
    const ShardName name = shard_name(path);
    EXPECT_EQ(name.key, key);
    EXPECT_EQ(name.field, field);
  };
  is("0001.jpg", "0001", "jpg");
  is("a.b/0001.Seg.PNG", "a.b/0001", "seg.png");
  is("a.b/0001", "a.b/0001", "");
  EXPECT_TRUE(is_picture_field("jpeg"));
  EXPECT_FALSE(is_picture_field("seg.png"));
}

TEST(MemberNames, HiddenIsWhatBeginsWithADot) {
  EXPECT_TRUE(is_hidden_path(".thumbs/1.jpg"));
  EXPECT_TRUE(is_hidden_path("cat/._1.jpg"));
  EXPECT_FALSE(is_hidden_path("cat/1.2.jpg"));
  EXPECT_EQ(folder_of_path("train/cat/1.jpg"), "train/cat");
  EXPECT_EQ(folder_of_path("1.jpg"), "");
}

}  // namespace
}  // namespace stretto::data
