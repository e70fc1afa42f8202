#include "models/synthesis/tacotron2.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "models/synthesis/tacotron2_steps.h"
#include "tests/models/synthesis/plain_tacotron2.h"
#include "tests/models/synthesis/synthesis_cases.h"
#include "tests/parallel/refusing_allocator.h"

namespace stretto::models::testing::synthesis {
namespace {

Tacotron2Options with_reduction(int64_t reduction) {
  Tacotron2Options options = small_tacotron2();
  options.reduction = reduction;
  return options;
}

TEST(Tacotron2, HasTheParametersOfTorchaudios) {
  const auto model = make_synthesis_model({.model = Tacotron2Options{},
                                           .num_symbols = 148,
                                           .parts = {.num_mels = 80},
                                           .device = at::kMeta});
  // Its LSTMs have a second bias each: two of 1,024 in the encoder, two of 4,096 in the decoder.
  EXPECT_EQ(num_parameters(*model), 28'193'153 - 2 * 1'024 - 2 * 4'096);
}

TEST(Tacotron2, ValuesAreThoseOfTheModelWrittenOut) {
  for (const int64_t reduction : {1, 2, 3}) {
    SCOPED_TRACE(reduction);
    const Tacotron2Options options = with_reduction(reduction);
    const auto model = small_model(options);
    const PlainTacotron2 plain(*model, options, kMels);
    const SynthesisInput input = input_of(every_sentence());
    const nn::PackedRows frames = frames_of(every_sentence(), kMels);
    const SynthesisOutput out = model->forward(input, frames, {}, WantsAttention::kValues);
    int64_t begin = 0;
    for (int64_t i = 0; i < 4; ++i) {
      const auto want = plain.speak(sentence(input.text.ids, input.text.offsets, i),
                                    sentence(frames.values, frames.offsets, i), input.prenet_seed,
                                    input.sentence_keys[i].item<int64_t>());
      const auto expect = [&](const at::Tensor& got, const at::Tensor& wanted, const char* what) {
        const at::Tensor own = sentence(got, frames.offsets, i);
        EXPECT_TRUE(at::allclose(own, wanted, 1e-8, 1e-10)) << what << " of sentence " << i;
      };
      expect(out.before, want.before, "before");
      expect(out.after, want.after, "after");
      expect(out.stop_logits, want.stop, "stop");
      const at::Tensor shares = out.attention.narrow(0, begin, want.attention.numel());
      EXPECT_TRUE(at::allclose(shares, want.attention, 1e-8, 1e-10));
      begin += want.attention.numel();
    }
    EXPECT_EQ(begin, out.attention.numel());
  }
}

TEST(Tacotron2, GradientsAreThoseOfTheModelWrittenOut) {
  const Tacotron2Options options = with_reduction(2);
  const auto model = small_model(options);
  const PlainTacotron2 plain(*model, options, kMels);
  const SynthesisInput input = input_of({0});
  const nn::PackedRows frames = frames_of({0}, kMels);
  const auto slopes = [&](const at::Tensor& after, const at::Tensor& stop,
                          const at::Tensor& attention) {
    model->zero_grad();
    const at::Tensor sum = (after * noise(after.sizes(), 1).to(at::kDouble)).sum() +
                           (stop * noise(stop.sizes(), 2).to(at::kDouble)).sum() +
                           (attention * noise(attention.sizes(), 3).to(at::kDouble)).sum();
    sum.backward();
    std::vector<at::Tensor> all;
    for (const auto& parameter : model->parameters()) all.push_back(parameter.grad().clone());
    return all;
  };
  const SynthesisOutput out = model->forward(input, frames, {}, WantsAttention::kGradient);
  const auto got = slopes(out.after, out.stop_logits, out.attention);
  const auto spoken = plain.speak(input.text.ids, frames.values, input.prenet_seed,
                                  input.sentence_keys[0].item<int64_t>());
  const auto want = slopes(spoken.after, spoken.stop, spoken.attention);
  const auto names = model->named_parameters().keys();
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(at::allclose(got[i], want[i], 1e-7, 1e-9)) << names[i];
    EXPECT_GT(want[i].abs().max().item<double>(), 0) << names[i];
  }
}

TEST(Tacotron2, SinglePrecisionIsCloseToDouble) {
  const Tacotron2Options options = with_reduction(2);
  const auto wide = small_model(options), narrow = small_model(options, at::kFloat);
  const auto gradients = [](SynthesisModel& model, at::ScalarType dtype) {
    const SynthesisOutput out =
        model.forward(input_of(every_sentence()), frames_of(every_sentence(), kMels, dtype), {},
                      WantsAttention::kGradient);
    (out.after.square().sum() + out.stop_logits.sum() + out.attention.square().sum()).backward();
    std::vector<at::Tensor> all{out.after.detach(), out.attention.detach()};
    for (const auto& parameter : model.parameters()) all.push_back(parameter.grad());
    return all;
  };
  const auto want = gradients(*wide, at::kDouble), got = gradients(*narrow, at::kFloat);
  for (size_t i = 0; i < got.size(); ++i) {
    const double size = want[i].abs().max().item<double>();
    EXPECT_LT((got[i] - want[i]).abs().max().item<double>(), 1e-4 * size + 1e-5) << i;
  }
}

TEST(Tacotron2, FreeRunningIsTeacherForcingWithItsOwnFrames) {
  for (const int64_t reduction : {1, 2, 3}) {
    SCOPED_TRACE(reduction);
    const auto wide = small_model(with_reduction(reduction));
    expect_free_running_to_be_teacher_forcing(*wide, 1e-8);
    const auto narrow = small_model(with_reduction(reduction), at::kFloat);
    expect_free_running_to_be_teacher_forcing(*narrow, 2e-4);
  }
}

TEST(Tacotron2, ASentenceDoesNotSeeThoseBesideIt) {
  const auto model = small_model(with_reduction(2));
  expect_sentences_to_be_alone(*model, kMels, at::kDouble, 1e-9);
}

TEST(Tacotron2, ASentenceSoundsTheSameAloneAndInABatchOfSixteen) {
  expect_the_same_voice_in_a_batch(*small_model(with_reduction(2), at::kFloat), 1e-5);
  expect_the_same_voice_in_a_batch(*small_model(with_reduction(1)), 1e-9);
}

/// The memory and keys of two sentences for steps of a small model in fp32.
struct Steps {
  Tacotron2Options options = with_reduction(2);
  Tacotron2StepWeights weights;
  kernels::Memory memory;
  at::Tensor keys = at::tensor({12, 77, -5}, at::kLong);

  Steps() {
    Tacotron2Decoder decoder(nn::Init(5, at::kCPU), options,
                             FrameParts{.num_mels = kMels, .num_bins = 0}, /*memory_width=*/11);
    shake(*decoder);
    const at::NoGradGuard no_grad;
    weights = decoder->step_weights();
    memory = decoder->memory(noise({9, 11}, 3),
                             {.values = at::tensor({0, 4, 5, 9}, at::kInt), .max_length = 4});
  }
};

TEST(Tacotron2Steps, BothFormsWriteTheSameFrames) {
  const Steps steps;
  const auto fast = make_tacotron2_steps(steps.weights, steps.memory, steps.keys, 3);
  const auto plain = make_plain_tacotron2_steps(steps.weights, steps.memory, steps.keys, 3);
  const auto got = decoding::write_frames(*fast, exactly(30));
  const auto want = decoding::write_frames(*plain, exactly(30));
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_TRUE(at::allclose(got[i].frames, want[i].frames, 1e-4, 1e-5)) << i;
    EXPECT_TRUE(at::allclose(got[i].weights, want[i].weights, 1e-4, 1e-5)) << i;
  }
}

TEST(Tacotron2Steps, AStepMakesNoTensor) {
  const Steps steps;
  const auto model = make_tacotron2_steps(steps.weights, steps.memory, steps.keys, 3);
  const auto lanes = static_cast<int64_t>(model->source_rows().size());
  const int64_t per_step = model->frames_per_step();
  const decoding::FrameStep out{
      .frames = at::empty({lanes, per_step * model->frame_width()}, model->like()),
      .stop = at::empty({lanes, per_step}, model->like()),
      .weights = at::empty({9}, model->like())};
  model->step(out);
  const stretto::test::RefusingScope scope;
  stretto::test::refusal() = {};
  for (int i = 0; i < 20; ++i) model->step(out);
  EXPECT_EQ(stretto::test::refusal().all, 0);
  at::empty({4}, model->like());
  EXPECT_EQ(stretto::test::refusal().all, 1) << "allocations are not counted";
}

TEST(Tacotron2Steps, LanesThatLeaveAndThreadsDoNotChangeABit) {
  const Steps steps;
  const auto run = [&](int threads, const decoding::FrameLimits& limits) {
    const int before = at::get_num_threads();
    at::set_num_threads(threads);
    const auto model = make_tacotron2_steps(steps.weights, steps.memory, steps.keys, 3);
    auto written = decoding::write_frames(*model, limits);
    at::set_num_threads(before);
    return written;
  };
  const auto whole = run(1, exactly(24));
  // Sentences of one and of four symbols end apart.
  const decoding::FrameLimits apart{.stop_threshold = 2, .max_frames = 24, .max_frames_per_row = 6};
  for (const int threads : {1, 2}) {
    const auto some = run(threads, apart);
    EXPECT_EQ(some[1].frames.size(0), 6);
    for (size_t i = 0; i < some.size(); ++i) {
      EXPECT_TRUE(at::equal(some[i].frames, whole[i].frames.narrow(0, 0, some[i].frames.size(0))));
    }
  }
}

TEST(Tacotron2, ThePrenetDropsBySeedSentenceAndStepAlone) {
  const auto model = small_model(with_reduction(1), at::kFloat);
  const at::NoGradGuard no_grad;
  const nn::PackedRows frames = frames_of({0, 3}, kMels, at::kFloat);
  SynthesisInput input = input_of({0, 3});
  const auto spoken = [&] { return model->forward(input, frames, {}).before; };
  const at::Tensor first = spoken();
  EXPECT_TRUE(at::equal(spoken(), first));
  input.prenet_seed = 2;
  EXPECT_FALSE(at::allclose(spoken(), first));
  input = input_of({0, 3});
  input.sentence_keys = input.sentence_keys + 1;
  EXPECT_FALSE(at::allclose(spoken(), first));
  input.sentence_keys = at::Tensor();
  EXPECT_THROW(spoken(), c10::Error);
  EXPECT_THROW(model->start(input), c10::Error);
}

TEST(Tacotron2, DropoutOfTrainingDependsOnTheUpdateAndTheSampleAlone) {
  Tacotron2Options options = with_reduction(2);
  options.decoder_dropout = 0.2;
  const auto model = small_model(options);  // norms stay in evaluation: they tie samples together
  const at::NoGradGuard no_grad;
  const auto spoken = [&](const std::vector<int64_t>& which, uint64_t key) {
    return model->forward(input_of(which, true), frames_of(which, kMels, at::kDouble, true),
                          {.training = true, .dropout_key = key});
  };
  const at::Tensor both = spoken({0, 3}, 7).after;
  EXPECT_TRUE(at::allclose(both.narrow(0, 0, 9), spoken({0}, 7).after, 1e-9, 1e-10));
  EXPECT_TRUE(at::allclose(both.narrow(0, 9, 12), spoken({3}, 7).after, 1e-9, 1e-10));
  EXPECT_FALSE(at::allclose(both, spoken({0, 3}, 8).after));
}

TEST(Tacotron2, SpeakersAndStyleChangeTheVoice) {
  Tacotron2Options options = small_tacotron2();
  options.style.num_tokens = 5;
  options.style.num_heads = 2;
  options.style.dim = 6;
  options.style.reference_dim = 4;
  options.speaker_dim = 3;
  const auto model = small_model(options, at::kDouble, /*num_speakers=*/3);
  const at::NoGradGuard no_grad;
  const std::vector<int64_t> which{0, 2};
  SynthesisInput input = input_of(which);
  const nn::PackedRows frames = frames_of(which, kMels);
  const auto spoken = [&] { return model->forward(input, frames, {}).after; };
  EXPECT_THROW(spoken(), c10::Error);  // which speakers?
  input.speakers = at::tensor({1, 1}, at::kLong);
  const at::Tensor first = spoken();
  input.speakers = at::tensor({1, 2}, at::kLong);
  const at::Tensor second = spoken();
  EXPECT_TRUE(at::equal(second.narrow(0, 0, 9), first.narrow(0, 0, 9)));
  EXPECT_FALSE(at::allclose(second.narrow(0, 9, 5), first.narrow(0, 9, 5)));
  input.style = frames_of({1, 3}, kMels);
  const at::Tensor styled = spoken();
  EXPECT_FALSE(at::allclose(styled, second));
  // The style of a sentence is its own reference's, whatever stands beside it.
  input = input_of({0});
  input.speakers = at::tensor({1}, at::kLong);
  input.style = frames_of({1}, kMels);
  EXPECT_TRUE(at::allclose(model->forward(input, frames_of({0}, kMels), {}).after,
                           styled.narrow(0, 0, 9), 1e-9, 1e-10));
}

TEST(Tacotron2, WritesMagnitudesAloneOrBesideMelBands) {
  Tacotron2Options options = small_tacotron2();
  options.spectrum = "magnitude";
  const auto alone = small_model(options);
  EXPECT_EQ(alone->parts().width(), kBins);
  EXPECT_EQ(alone->forward(input_of({0}), frames_of({0}, kBins), {}).after.size(1), kBins);
  options.spectrum = "both";
  const auto both = small_model(options);
  const at::NoGradGuard no_grad;
  const nn::PackedRows frames = frames_of({0, 1}, kMels + kBins);
  const SynthesisOutput out = both->forward(input_of({0, 1}), frames, {});
  EXPECT_EQ(out.after.size(1), kMels);
  EXPECT_EQ(out.magnitude.size(1), kBins);
  const at::Tensor finished = both->finish(out.before, frames.offsets);
  EXPECT_TRUE(at::allclose(finished, at::cat({out.after, out.magnitude}, 1), 1e-9, 1e-10));
  const auto spoken = synthesise(*both, input_of({0, 1}), exactly(7));
  EXPECT_EQ(spoken[1].frames.sizes(), at::IntArrayRef({7, kMels + kBins}));
}

TEST(Tacotron2, FirstWeightsDependOnSeedAndNameAlone) {
  const auto build = [](uint64_t seed, int64_t symbols) {
    return make_synthesis_model({.model = small_tacotron2(),
                                 .num_symbols = symbols,
                                 .parts = {.num_mels = kMels},
                                 .seed = seed});
  };
  const auto parameter = [](const std::shared_ptr<SynthesisModel>& model, const char* name) {
    return *model->named_parameters().find(name);
  };
  for (const char* name : {"decoder.location_filters", "decoder.score", "postnet.norm1.weight",
                           "encoder.forward.input.weight", "decoder.prenet.layer0.weight"}) {
    EXPECT_TRUE(at::equal(parameter(build(1, 20), name), parameter(build(1, 30), name))) << name;
  }
  EXPECT_FALSE(at::equal(parameter(build(1, 20), "decoder.score"),
                         parameter(build(2, 20), "decoder.score")));
}

}  // namespace
}  // namespace stretto::models::testing::synthesis
