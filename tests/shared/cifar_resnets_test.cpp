// The trained ResNets of akamaster/pytorch_resnet_cifar10: files of PyTorch before 1.6, with a
// checkpoint of a training program, names behind `module.`, and shortcuts without weights.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "families/image_classification/image_classification_options.h"
#include "interchange/folder_tensors.h"
#include "interchange/import_folder.h"
#include "store/torch_file.h"

namespace stretto {
namespace {

struct RealResNet {
  const char* file;
  const char* preset;
  size_t tensors;
};

const RealResNet kResNets[] = {{"resnet20-12fca82f.th", "resnet20", 97},
                               {"resnet32-d509ac18.th", "resnet32", 157},
                               {"resnet56-4bfd9763.th", "resnet56", 277}};

class CifarResNets : public ::testing::TestWithParam<RealResNet> {
 protected:
  void SetUp() override {
    const char* shared = std::getenv("STRETTO_SHARED");
    if (shared == nullptr) GTEST_SKIP() << "STRETTO_SHARED names no folder with data";
    file_ = std::filesystem::path(shared) / "data/cifar_resnets" / GetParam().file;
    if (!std::filesystem::exists(file_)) GTEST_SKIP() << "no " << file_;
  }

  std::filesystem::path file_;
};

TEST_P(CifarResNets, AllTensorsAreRead) {
  const auto run = interchange::import_folder(file_);
  EXPECT_EQ(run.model_class, GetParam().preset);
  EXPECT_EQ(run.tensors.size(), GetParam().tensors);
  EXPECT_TRUE(run.missing.empty());
  EXPECT_TRUE(run.left_out.empty());
  EXPECT_EQ(store::TorchFile(file_).tensors().size(), GetParam().tensors);
  EXPECT_TRUE(interchange::not_finite({.ours = run.tensors, .names = run.names}).empty());
}

TEST_P(CifarResNets, TheModelIsThePublishedOne) {
  const auto run = interchange::import_folder(file_);
  const auto& sections = experiment::images_of(run.experiment);
  const auto& model = sections.model.as<models::ResNetOptions>();
  EXPECT_EQ(model.preset, GetParam().preset);
  EXPECT_EQ(models::shape_of(model).shortcut, models::ResNetShortcut::kPadding);
  EXPECT_FALSE(models::shape_of(model).has_large_stem);
  EXPECT_EQ(sections.augment.image_size, 32);
  EXPECT_EQ(sections.data.classes.size(), 10U);
}

// Variances are not negative, and the gains of trained norms differ from 1.
TEST_P(CifarResNets, StatisticsStandInTheirPlaces) {
  const auto run = interchange::import_folder(file_);
  for (const auto& tensor : run.tensors) {
    if (!tensor.name.ends_with("running_var")) continue;
    for (size_t at = 0; at < tensor.bytes.size(); at += sizeof(float)) {
      float value = 0;
      std::memcpy(&value, tensor.bytes.data() + at, sizeof(float));
      ASSERT_GE(value, 0.0F) << tensor.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Published, CifarResNets, ::testing::ValuesIn(kResNets),
                         [](const auto& tested) { return std::string(tested.param.preset); });

}  // namespace
}  // namespace stretto
