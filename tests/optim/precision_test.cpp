#include "optim/precision.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace stretto::optim {
namespace {

using kernels::Compute;

TEST(Precision, NamesOnACpu) {
  struct Row {
    std::string option, name;
    Compute compute;
  };
  const bool fast = kernels::has_fast_bf16();
  for (const auto& [option, name, compute] :
       {Row{"fp32", "fp32", Compute::kFp32}, Row{"tf32", "fp32", Compute::kFp32},
        Row{"mixed_bf16", "mixed_bf16", Compute::kBf16},
        Row{"mixed_fp16", "mixed_fp16", Compute::kFp16},
        Row{"auto", fast ? "mixed_bf16" : "fp32", fast ? Compute::kBf16 : Compute::kFp32},
        Row{"auto_fp16", fast ? "mixed_bf16" : "fp32", fast ? Compute::kBf16 : Compute::kFp32}}) {
    const Precision got = choose_precision(option, c10::kCPU);
    EXPECT_EQ(got.name, name) << option;
    EXPECT_EQ(got.compute, compute) << option;
    EXPECT_FALSE(got.why.empty()) << option;
  }
}

TEST(Precision, SaysWhatAUserMustKnow) {
  EXPECT_NE(choose_precision("tf32", c10::kCPU).why.find("on a CPU it is fp32"), std::string::npos);
  EXPECT_NE(choose_precision("mixed_fp16", c10::kCPU).why.find("not faster"), std::string::npos);
  const std::string automatic = choose_precision("auto", c10::kCPU).why;
  EXPECT_NE(automatic.find(kernels::has_fast_bf16() ? "AVX512_BF16" : "not faster"),
            std::string::npos)
      << automatic;
}

TEST(Precision, RemarksOnWhatWasNotAskedForAndOnRoundingThatSavesNothing) {
  const bool fast = kernels::has_fast_bf16();
  const Precision fp16 = choose_precision("mixed_fp16", c10::kCPU);
  EXPECT_TRUE(fp16.remarkable);
  EXPECT_EQ(fp16.why,
            "products in fp16, all else in fp32; this processor rounds to it and multiplies in "
            "fp32: not faster than fp32");
  const Precision bf16 = choose_precision("mixed_bf16", c10::kCPU);
  EXPECT_EQ(bf16.remarkable, !fast);
  EXPECT_EQ(bf16.why.find("not faster than fp32") == std::string::npos, fast) << bf16.why;
  EXPECT_TRUE(choose_precision("auto", c10::kCPU).remarkable);
  EXPECT_TRUE(choose_precision("tf32", c10::kCPU).remarkable);
  EXPECT_FALSE(choose_precision("fp32", c10::kCPU).remarkable);
}

TEST(Precision, AutomaticChoicesByTheHardware) {
  struct Row {
    const char* what;
    Hardware hardware;
    const char *automatic, *automatic_fp16;
  };
  const Row rows[] = {
      {"a GPU of the paper's time", {true, false, true}, "fp32", "mixed_fp16"},
      {"a GPU of today", {true, true, true}, "mixed_bf16", "mixed_fp16"},
      {"a GPU without tensor cores", {true, false, false}, "fp32", "fp32"},
      {"a CPU that multiplies bf16", {false, true, false}, "mixed_bf16", "mixed_bf16"},
      {"any other CPU", {false, false, false}, "fp32", "fp32"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    EXPECT_EQ(choose_precision("auto", row.hardware).name, row.automatic);
    const Precision chosen = choose_precision("auto_fp16", row.hardware);
    EXPECT_EQ(chosen.name, row.automatic_fp16);
    EXPECT_TRUE(chosen.remarkable);
    EXPECT_TRUE(chosen.why.starts_with("auto_fp16: ")) << chosen.why;
    const bool fp16 = chosen.compute == Compute::kFp16;
    EXPECT_EQ(fp16, chosen.name == "mixed_fp16");
    const auto scaler = loss_scaler_for(chosen, {}, 128);
    EXPECT_EQ(scaler->name(), fp16 ? "fairseq" : "none");
    EXPECT_EQ(scaler->scale(), fp16 ? 128 : 1);
  }
}

TEST(Precision, AnUnknownNameListsTheKnown) {
  try {
    choose_precision("fp8", c10::kCPU);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(error.advice().find("mixed_bf16"), std::string::npos);
  }
}

TEST(Precision, AutomaticLossScaling) {
  const auto scale_of = [](const std::string& precision, const std::string& name) {
    LossScaleOptions options;
    options.name = name;
    return loss_scaler_for(choose_precision(precision, c10::kCPU), options, 1)->scale();
  };
  EXPECT_EQ(scale_of("mixed_fp16", "auto"), 128);  // fairseq
  for (const char* precision : {"fp32", "tf32", "mixed_bf16"})
    EXPECT_EQ(scale_of(precision, "auto"), 1) << precision;
  EXPECT_EQ(scale_of("mixed_bf16", "backoff"), 16384);  // who asks gets it
}

}  // namespace
}  // namespace stretto::optim
