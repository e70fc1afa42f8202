#include "losses/teacher_options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "losses/cross_entropy_options.h"
#include "losses/label_loss_options.h"
#include "losses/masked_token_loss_options.h"

namespace stretto::losses {
namespace {

/// The names of a section's keys that begin with "teacher".
template <class Options>
std::vector<std::string> teacher_keys() {
  std::vector<std::string> names;
  Options::fields().for_each([&](const auto& key) {
    if (key.name.starts_with("teacher")) names.push_back(key.name);
  });
  return names;
}

TEST(TeacherOptions, HaveOneNameInEverySection) {
  const std::vector<std::string> of_labels{"teacher",        "teacher_checkpoint",
                                           "teacher_weight", "teacher_temperature",
                                           "teacher_hidden", "teacher_attention"};
  const std::vector<std::string> of_tokens(of_labels.begin(), of_labels.begin() + 4);
  EXPECT_EQ(teacher_keys<CrossEntropyOptions>(), of_tokens);
  EXPECT_EQ(teacher_keys<LabelLossOptions>(), of_labels);
  EXPECT_EQ(teacher_keys<MaskedTokenLossOptions>(), of_labels);
}

TEST(TeacherOptions, NothingNeedsATeacherOnceItIsCleared) {
  LabelLossOptions options;
  options.label_smoothing = 0.1;
  options.teacher = "runs/teacher";
  options.teacher_hidden = options.teacher_attention = 0.5;
  EXPECT_TRUE(options.has_teacher());
  options.clear_teacher();
  EXPECT_FALSE(options.has_teacher());
  EXPECT_EQ(options.teacher_hidden, 0) << "refused without a teacher";
  EXPECT_EQ(options.teacher_attention, 0);
  EXPECT_EQ(options.label_smoothing, 0.1);
}

}  // namespace
}  // namespace stretto::losses
