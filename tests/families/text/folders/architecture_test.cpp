#include "families/text/folders/architecture.h"

#include <gtest/gtest.h>

#include <set>

namespace stretto::interchange {
namespace {

ModelDescription described(Head head) {
  ModelDescription description{.head = head, .labels = {"a", "b"}};
  description.model.preset = "none";
  description.model.num_layers = 2;
  description.model.d_model = 4;
  description.model.num_heads = 2;
  return description;
}

TEST(Architectures, NoTableNamesATensorTwice) {
  for (const Architecture* architecture : architectures()) {
    for (const Head head : {Head::kNone, Head::kMaskedTokens, Head::kLabels, Head::kSpans}) {
      std::set<std::string> theirs, ours;
      for (const auto& pair : names_of(*architecture, described(head), true)) {
        EXPECT_TRUE(ours.insert(pair.ours).second) << pair.ours;
        for (const auto& name : pair.theirs) EXPECT_TRUE(theirs.insert(name).second) << name;
      }
    }
  }
}

TEST(Architectures, AreFoundByTheirType) {
  EXPECT_EQ(find_architecture("roberta"), &kRoberta);
  EXPECT_EQ(find_architecture("gpt2"), nullptr);
  EXPECT_EQ(class_name(kDistilBert, Head::kSpans), "DistilBertForQuestionAnswering");
  EXPECT_EQ(class_name(kBert, Head::kNone), "BertModel");
}

}  // namespace
}  // namespace stretto::interchange
