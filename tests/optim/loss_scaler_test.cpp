#include "optim/loss_scaler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"

namespace stretto::optim {
namespace {

LossScaleOptions named(const std::string& name) {
  LossScaleOptions options;
  options.name = name;
  return options;
}

constexpr ScaledStep kGood{.overflow = false, .max_abs = 1};
constexpr ScaledStep kOverflow{.overflow = true,
                               .max_abs = std::numeric_limits<double>::infinity()};

/// One letter an attempt: '.' good, 'o' overflow.
void feed(LossScaler& scaler, const std::string& steps) {
  for (const char step : steps) scaler.update(step == 'o' ? kOverflow : kGood);
}

struct Row {
  std::string steps;  ///< attempts before the scale is looked at
  double scale;
};

void expect_table(const LossScaleOptions& options, int64_t update_freq,
                  const std::vector<Row>& table) {
  const auto scaler = make_loss_scaler(options, update_freq);
  std::string sofar;
  for (const Row& row : table) {
    feed(*scaler, row.steps);
    sofar += row.steps;
    EXPECT_EQ(scaler->scale(), row.scale) << options.name << " after " << sofar;
  }
}

TEST(LossScaler, NoneAndStaticNeverChange) {
  expect_table(named("none"), 1, {{"", 1}, {"..o.", 1}, {"oooo", 1}});
  expect_table(named("static"), 1, {{"", 128}, {"..o.", 128}, {"oooo", 128}});
  LossScaleOptions options = named("static");
  options.init = 1000;
  expect_table(options, 1, {{"", 1000}, {"o.", 1000}});
}

TEST(LossScaler, BackoffFollowsTheTable) {
  LossScaleOptions options = named("backoff");
  options.window = 4;
  options.init = 256;
  options.max = 1024;
  expect_table(options, 1,
               {{"", 256},
                {"...", 256},
                {".", 512},  // four attempts since the start
                {"...", 512},
                {"o", 256},  // instead of growing
                {"...", 256},
                {".", 512},  // four since the overflow
                {"....", 1024},
                {"....", 1024},  // not above max
                {"oo", 256},
                {"..o", 128},
                {"....", 256}});
}

TEST(LossScaler, FairseqFollowsTheTable) {
  LossScaleOptions options = named("fairseq");
  options.window = 3;
  expect_table(options, 1,
               {{"", 128},
                {"..", 128},
                {".", 256},
                {"...", 512},
                {"o", 256},
                {"..", 256},
                {".", 512},
                {"..o", 256},
                {"o", 128},
                {"...", 256}});
}

TEST(LossScaler, DefaultsAreTheConstantsOfTheOriginals) {
  EXPECT_EQ(make_loss_scaler(named("backoff"), 1)->scale(), 16384);
  EXPECT_EQ(make_loss_scaler(named("fairseq"), 1)->scale(), 128);
  EXPECT_EQ(make_loss_scaler(named("logmax"), 1)->scale(), 1);
  const std::string window(2000, '.');
  expect_table(named("backoff"), 16,
               {{"o", 8192}, {window.substr(1), 8192}, {".", 16384}, {window, 16384}});
}

/// For windows of thousands: so many good attempts, then perhaps an overflow, then the scale.
struct LongRow {
  size_t good;
  bool overflow;
  double scale;
};

void expect_long_table(const LossScaleOptions& options, int64_t update_freq,
                       const std::vector<LongRow>& table) {
  const auto scaler = make_loss_scaler(options, update_freq);
  size_t attempts = 0;
  for (const LongRow& row : table) {
    for (size_t i = 0; i < row.good; ++i) scaler->update(kGood);
    if (row.overflow) scaler->update(kOverflow);
    attempts += row.good + (row.overflow ? 1 : 0);
    EXPECT_EQ(scaler->scale(), row.scale)
        << options.name << ", update_freq " << update_freq << ", after " << attempts << " attempts";
  }
}

TEST(LossScaler, BackoffWithTheConstantsOfTheOriginal) {
  // scale_max 2^14 where it starts, factor 2, step_window 2000; update_freq does not enter.
  for (const int64_t update_freq : {1, 16}) {
    expect_long_table(named("backoff"), update_freq,
                      {{0, false, 16384},
                       {2000, false, 16384},  // not above its maximum
                       {700, true, 8192},
                       {0, true, 4096},
                       {1999, false, 4096},
                       {1, false, 8192},  // 2000 good ones since the overflow
                       {1999, false, 8192},
                       {0, true, 4096},  // in place of growing
                       {1999, false, 4096},
                       {1, false, 8192},
                       {2000, false, 16384},
                       {2000, false, 16384}});
  }
}

TEST(LossScaler, FairseqWithTheConstantsOfTheOriginal) {
  // init 2^7, factor 2, window 2^14 / update_freq, no maximum.
  for (const int64_t update_freq : {1, 16}) {
    const size_t window = update_freq == 1 ? 16384 : 1024;
    expect_long_table(named("fairseq"), update_freq,
                      {{0, false, 128},
                       {window - 1, false, 128},
                       {1, false, 256},
                       {window - 1, false, 256},
                       {1, false, 512},
                       {window / 2, true, 256},
                       {window - 1, false, 256},  // the window begins anew at the overflow
                       {1, false, 512},
                       {window - 1, true, 256},  // in place of growing
                       {0, true, 128},
                       {window, false, 256},
                       {2 * window, false, 1024}});
  }
}

TEST(LossScaler, TheWindowOfFairseqIsSharedByTheMicroBatchesOfAnUpdate) {
  const std::string window((1 << 14) / 16, '.');
  expect_table(named("fairseq"), 16, {{window.substr(1), 128}, {".", 256}, {window, 512}});
  expect_table(named("fairseq"), 1 << 20, {{".", 256}, {".", 512}});  // at least one update
}

TEST(LossScaler, TheFactorIsOfGrowthAndShrinking) {
  LossScaleOptions options = named("fairseq");
  options.factor = 4;
  options.window = 2;
  expect_table(options, 1, {{"..", 512}, {"o", 128}, {"o", 32}});
}

/// @param advice  names the option that set the smallest scale, if one did
void expect_stop(LossScaler& scaler, const std::string& advice = "") {
  try {
    scaler.update(kOverflow);
    ADD_FAILURE() << "went on at scale " << scaler.scale();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kNumeric);
    EXPECT_EQ(error.advice(), advice);
    const bool blames_the_loss =
        std::string(error.what()).ends_with("the loss is probably exploding");
    EXPECT_EQ(blames_the_loss, advice.empty()) << error.what();
  }
}

TEST(LossScaler, AnOverflowAtTheSmallestScaleStops) {
  const auto backoff = make_loss_scaler(named("backoff"), 1);
  feed(*backoff, std::string(27, 'o'));
  EXPECT_EQ(backoff->scale(), std::exp2(-13.0));
  feed(*backoff, "o...");  // the floor itself is fine while nothing overflows
  EXPECT_EQ(backoff->scale(), 1e-4);
  expect_stop(*backoff);
}

// A healthy model whose scale must be small because its micro-batches are large.
TEST(LossScaler, BackoffSettlesWhereOpenSeq2SeqWouldStop) {
  const auto backoff = make_loss_scaler(named("backoff"), 1);
  feed(*backoff, std::string(14, 'o'));
  EXPECT_EQ(backoff->scale(), 1);
  feed(*backoff, "oo" + std::string(1999, '.'));
  EXPECT_EQ(backoff->scale(), 0.25);
  feed(*backoff, ".");
  EXPECT_EQ(backoff->scale(), 0.5);
}

TEST(LossScaler, AStopAtASmallestScaleThatWasSetNamesItsOption) {
  LossScaleOptions options = named("fairseq");
  options.init = 1048576;
  options.min = 500000;
  const auto fairseq = make_loss_scaler(options, 1);
  feed(*fairseq, "o");
  expect_stop(*fairseq, "lower train.loss_scale.min, 500000");
  for (const char* name : {"backoff", "logmax"}) {
    options = named(name);
    options.init = options.min = 8;
    expect_stop(*make_loss_scaler(options, 1), "lower train.loss_scale.min, 8");
  }
}

TEST(LossScaler, NoScaleLeavesFp32) {
  LossScaleOptions options = named("fairseq");
  options.init = 1e36;
  options.factor = 1000;
  options.window = 1;
  expect_table(options, 1, {{"", 1e36}, {".", 0x1p127}, {"..", 0x1p127}, {"o", 0x1p127 / 1000}});
  options.max = 1e300;
  expect_table(options, 1, {{"..", 0x1p127}});
  for (const char* name : {"static", "fairseq", "backoff"}) {
    for (const double init : {1e39, 1e300, 1e-40}) {
      LossScaleOptions outside = named(name);
      outside.init = init;
      outside.min = 1e-45;
      outside.max = 1e300;
      EXPECT_THROW(make_loss_scaler(outside, 1), Error) << name << " " << init;
    }
  }
}

TEST(LossScaler, FairseqStopsBeforeItsSmallestScale) {
  const auto fairseq = make_loss_scaler(named("fairseq"), 1);
  feed(*fairseq, std::string(20, 'o'));
  EXPECT_EQ(fairseq->scale(), 128 / std::exp2(20.0));  // 1.2e-4; the next would be below 1e-4
  expect_stop(*fairseq);
}

TEST(LossScaler, LogMaxStopsAtTheSmallestScale) {
  const auto logmax = make_loss_scaler(named("logmax"), 1);
  logmax->update({.max_abs = std::exp2(20.0)});
  EXPECT_EQ(logmax->scale(), 0.0625);
  logmax->update({.max_abs = std::exp2(60.0)});
  EXPECT_EQ(logmax->scale(), 1e-4);
  expect_stop(*logmax);
}

// 16 says nothing new at a scale of 1, nor below: each overflow there must lower it.
TEST(LossScaler, LogMaxFallsWithEachOverflowBelowOne) {
  const auto scaler = make_loss_scaler(named("logmax"), 1);
  scaler->update(kOverflow);  // x = 17
  EXPECT_EQ(scaler->scale(), 0.5);
  for (double before = 0.5; before > 0.01; before = scaler->scale()) {
    scaler->update(kOverflow);
    EXPECT_LT(scaler->scale(), before / 2);
  }
  for (int i = 0; i < 3; ++i) scaler->update({.max_abs = std::exp2(20.0)});
  const double found = scaler->scale();
  EXPECT_LT(found, 1);
  scaler->update(kOverflow);
  EXPECT_LT(scaler->scale(), found);
}

/// The formula of the header with plain sums instead of running averages.
double logmax_scale(const std::vector<double>& logs) {
  double m = 0, s = 0, q = 0, m_weight = 0, s_weight = 0;
  for (size_t i = 0; i < logs.size(); ++i) {
    const double age = static_cast<double>(logs.size() - 1 - i);
    m += std::pow(0.99, age) * logs[i];
    m_weight += std::pow(0.99, age);
    s += std::pow(0.999, age) * logs[i];
    q += std::pow(0.999, age) * logs[i] * logs[i];
    s_weight += std::pow(0.999, age);
  }
  s /= s_weight;
  const double sigma = std::sqrt(std::max(0.0, q / s_weight - s * s));
  return std::clamp(std::exp2(16 - (m / m_weight + 3.09 * sigma)), 1e-4, 16384.0);
}

TEST(LossScaler, LogMaxFollowsItsFormula) {
  const auto scaler = make_loss_scaler(named("logmax"), 1);
  EXPECT_TRUE(scaler->wants_max_abs());
  std::vector<double> logs;
  for (const double x : {5.0, 5.0, 7.0, 4.0, 6.5, 6.0, 16.0, 5.0, 5.5, -3.0, -2.0}) {
    logs.push_back(x);
    // 16 stands for what was not finite.
    scaler->update(x == 16.0 ? kOverflow : ScaledStep{.max_abs = std::exp2(x)});
    EXPECT_NEAR(scaler->scale(), logmax_scale(logs), 1e-9 * scaler->scale()) << logs.size();
  }
}

TEST(LossScaler, LogMaxTableOverSteps) {
  const auto scaler = make_loss_scaler(named("logmax"), 1);
  scaler->update({.max_abs = 16});  // 2^4, no spread yet: 2^(16 - 4)
  EXPECT_DOUBLE_EQ(scaler->scale(), 4096);
  scaler->update({.max_abs = 16});
  EXPECT_NEAR(scaler->scale(), 4096, 1e-6 * 4096);
  scaler->update({.max_abs = 0});  // says nothing
  EXPECT_NEAR(scaler->scale(), 4096, 1e-6 * 4096);
  scaler->update(kOverflow);  // mean 8.04, sigma 5.66 of (4, 4, 16): the cutoff is 25.5
  EXPECT_NEAR(scaler->scale(), std::exp2(-9.53), 1e-5);
  for (int i = 0; i < 400; ++i) scaler->update({.max_abs = 16});
  EXPECT_GT(scaler->scale(), 500);  // one overflow is forgotten
  EXPECT_LT(scaler->scale(), 4096);
}

TEST(LossScaler, LogMaxSurvivesGradientsThatAreZeroFromTheStart) {
  const auto scaler = make_loss_scaler(named("logmax"), 1);
  for (int i = 0; i < 3; ++i) scaler->update({.max_abs = 0});
  EXPECT_EQ(scaler->scale(), 1);
  scaler->update({.max_abs = 4});
  EXPECT_DOUBLE_EQ(scaler->scale(), 16384);
}

TEST(LossScaler, ARestoredScalerGoesOnAsTheOneThatWasSaved) {
  const std::string steps = "...o..o.........o....";
  for (const char* name : {"none", "static", "backoff", "fairseq", "logmax"}) {
    LossScaleOptions options = named(name);
    options.window = 3;
    for (size_t cut = 0; cut <= steps.size(); ++cut) {
      const auto whole = make_loss_scaler(options, 1), second = make_loss_scaler(options, 1);
      const auto update = [&](LossScaler& scaler, size_t i) {
        scaler.update(steps[i] == 'o' && scaler.scale() > 1
                          ? kOverflow
                          : ScaledStep{.max_abs = 0.01 * static_cast<double>(i * i % 7 + 1)});
      };
      for (size_t i = 0; i < cut; ++i) update(*whole, i);
      second->restore(whole->state());
      EXPECT_EQ(second->state(), whole->state());
      for (size_t i = cut; i < steps.size(); ++i) {
        update(*whole, i);
        update(*second, i);
        ASSERT_EQ(second->scale(), whole->scale()) << name << " cut at " << cut << ", step " << i;
      }
      EXPECT_EQ(second->state(), whole->state());
    }
  }
}

TEST(LossScaler, AStateOfAnotherMethodIsRefused) {
  const auto state = make_loss_scaler(named("static"), 1)->state();
  for (const char* name : {"fairseq", "logmax"})
    EXPECT_THROW(make_loss_scaler(named(name), 1)->restore(state), Error) << name;
}

TEST(LossScaler, WrongOptionsAreRefused) {
  EXPECT_THROW(make_loss_scaler(named("dynamic"), 1), Error);
  LossScaleOptions options = named("backoff");
  options.min = 64;
  options.max = 32;
  EXPECT_THROW(make_loss_scaler(options, 1), Error);
  // Not cut to a bound that nobody set.
  options = named("backoff");
  options.init = 100000;
  EXPECT_THROW(make_loss_scaler(options, 1), Error);
  options.max = 131072;
  EXPECT_EQ(make_loss_scaler(options, 1)->scale(), 100000);
}

TEST(LossScaler, EachKnowsItsName) {
  for (const char* name : {"none", "static", "backoff", "fairseq", "logmax"}) {
    EXPECT_EQ(make_loss_scaler(named(name), 1)->name(), name);
  }
}

}  // namespace
}  // namespace stretto::optim
