#include "models/synthesis/tacotron2_steps.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "kernels/compute.h"
#include "kernels/fused_common.h"
#include "kernels/gemm/gemm.h"
#include "kernels/recurrent/attention_pass.h"
#include "kernels/recurrent/cell_pass.h"
#include "kernels/recurrent/location_pass.h"
#include "kernels/recurrent/product.h"
#include "kernels/recurrent/schedule.h"
#include "models/synthesis/prenet.h"
#include "models/synthesis/synthesis_part.h"

namespace stretto::models {
namespace {

using kernels::Lines;
using kernels::ThreadTeam;
using kernels::gemm::Packed;

Packed packed(const at::Tensor& weight) {
  return Packed({weight.contiguous(), true}, kernels::Compute::kFp32, kernels::gemm::Pages::kLarge);
}

/// Widths of what a step reads and writes.
struct StepWidths {
  int64_t prenet, units, memory, keys, frame, per_step;

  explicit StepWidths(const Tacotron2StepWeights& weights)
      : prenet(weights.lower_input.size(1)),
        units(weights.upper_hidden.size(1)),
        memory(weights.lower.context.size(1)),
        keys(weights.lower.query.size(0)),
        frame(weights.frame_width),
        per_step(weights.frames_per_step) {}

  // A lane's line is [p, h1, context, h2]: what each product reads lies side by side in it.
  int64_t line() const { return prenet + 2 * units + memory; }
  int64_t h1() const { return prenet; }
  int64_t context() const { return prenet + units; }
  int64_t h2() const { return prenet + units + memory; }
  int64_t output() const { return per_step * (frame + 1); }
};

/// Weights laid out for the lines.
struct StepPacks {
  std::vector<Packed> prenet;
  Packed lower, query, upper, output;
  at::Tensor lower_bias, upper_bias, output_bias, score;

  explicit StepPacks(const Tacotron2StepWeights& weights)
      : lower(packed(at::cat(
            {weights.lower_input, weights.lower.recurrent.hidden, weights.lower.context}, 1))),
        query(packed(weights.lower.query)),
        upper(packed(at::cat({weights.upper_input, weights.upper_hidden}, 1))),
        output(packed(at::cat({weights.output.slice(1, weights.upper_hidden.size(1)),
                               weights.output.slice(1, 0, weights.upper_hidden.size(1))},
                              1))),
        lower_bias(weights.lower_bias.contiguous()),
        upper_bias(weights.upper_bias.contiguous()),
        output_bias(weights.output_bias.contiguous()),
        score(weights.lower.score.contiguous()) {
    for (const at::Tensor& weight : weights.prenet) prenet.push_back(packed(weight));
  }

  /// Numbers that a step multiplies a lane with.
  int64_t numbers() const {
    int64_t sum = 0;
    for (const Packed* one : {&lower, &query, &upper, &output}) {
      sum += one->depth() * one->columns();
    }
    return sum;
  }
};

/// Lines of zeroes.
Lines zero_lines(int64_t lanes, int64_t width) {
  Lines lines = Lines::of_ranks(lanes, width);
  lines.tensor().zero_();
  return lines;
}

class FastSteps : public decoding::FrameModel {
 public:
  FastSteps(const Tacotron2StepWeights& weights, const kernels::Memory& memory,
            const at::Tensor& sentence_keys, uint64_t prenet_seed);

  int64_t frame_width() const override { return widths_.frame; }
  int64_t frames_per_step() const override { return widths_.per_step; }
  const std::vector<int64_t>& source_rows() const override { return rows_; }
  at::TensorOptions like() const override { return at::kFloat; }
  void step(const decoding::FrameStep& out) override;
  void keep(std::span<const int64_t> lanes) override;

 private:
  void work(const decoding::FrameStep& out, const ThreadTeam& team);
  void multiply(const float* from, int64_t stride, const Packed& weight, const float* bias,
                const Lines& to, const ThreadTeam& team) const;
  /// The same from a place of the lanes' lines.
  void multiply_line(int64_t place, const Packed& weight, const float* bias, const Lines& to,
                     const ThreadTeam& team) const {
    multiply(lines_.of_rank(0) + place, lines_.stride(), weight, bias, to, team);
  }
  void prenet(const ThreadTeam& team) const;
  void cell(int64_t lane, const at::Tensor& bias, int64_t h_place, const Lines& c) const;
  void attend(int64_t lane, float* weights) const;
  void give(int64_t lane, const decoding::FrameStep& out) const;
  void find_begins();

  StepWidths widths_;
  StepPacks packs_;
  kernels::PreparedMemory memory_;
  kernels::Scorer scorer_;
  kernels::Location location_;
  kernels::StepTeam team_;
  // Of lanes.
  std::vector<int64_t> sources_, rows_, sentence_keys_, begins_;
  at::Tensor step_keys_;  // int64: where the pre-net's masks of this step come from
  std::vector<kernels::cpu::Drop> drops_;
  Lines lines_, frames_, c1_, c2_;
  // Of one step.
  std::array<Lines, 2> hidden_;
  Lines masks_, gates_, gate_values_, h_before_, c_next_, queries_, output_;
  at::Tensor last_, sums_;   // of the memory's rows: attention weights
  std::vector<float> keep_;  // zoneout at its mean; empty: none
  int64_t steps_ = 0;
};

FastSteps::FastSteps(const Tacotron2StepWeights& weights, const kernels::Memory& memory,
                     const at::Tensor& sentence_keys, uint64_t prenet_seed)
    : widths_(weights),
      packs_(weights),
      memory_(memory, kernels::Score::kAdditive, kernels::Compute::kFp32),
      scorer_{packs_.score},
      location_(weights.lower.location),
      step_keys_(sentence_keys.to(at::kLong).clone()) {
  const auto lanes = static_cast<int64_t>(memory_.begins.size()) - 1;
  for (int64_t i = 0; i < lanes; ++i) {
    sources_.push_back(i);
    rows_.push_back(memory_.count(i));
    sentence_keys_.push_back(sentence_keys[i].item<int64_t>());
  }
  find_begins();
  const nn::DropoutSource masks = prenet_masks_of_step(prenet_seed, step_keys_);
  for (size_t i = 0; i < packs_.prenet.size(); ++i) {
    drops_.push_back(kernels::fused::drop_of(masks.at(weights.prenet_dropout, kSynthesisPrenet + i),
                                             step_keys_));
  }
  const int64_t units = widths_.units;
  lines_ = zero_lines(lanes, widths_.line());
  frames_ = zero_lines(lanes, widths_.frame);
  c1_ = zero_lines(lanes, units);
  c2_ = zero_lines(lanes, units);
  for (Lines* hidden : {&hidden_[0], &hidden_[1], &masks_}) {
    *hidden = Lines::of_ranks(lanes, widths_.prenet);
  }
  gates_ = Lines::of_ranks(lanes, 4 * units);
  gate_values_ = Lines::of_ranks(lanes, 4 * units);
  h_before_ = Lines::of_ranks(lanes, units);
  c_next_ = Lines::of_ranks(lanes, units);
  queries_ = Lines::of_ranks(lanes, widths_.keys);
  output_ = Lines::of_ranks(lanes, widths_.output());
  last_ = at::zeros({memory_.begins.back()}, at::kFloat);
  sums_ = at::zeros({memory_.begins.back()}, at::kFloat);
  if (weights.zoneout > 0) {
    const double share = static_cast<double>(std::lround(weights.zoneout * 65536)) / 65536.0;
    keep_.assign(static_cast<size_t>(units), static_cast<float>(share));
  }
}

void FastSteps::find_begins() {
  begins_.assign(1, 0);
  for (const int64_t rows : rows_) begins_.push_back(begins_.back() + rows);
}

void FastSteps::multiply(const float* from, int64_t stride, const Packed& weight, const float* bias,
                         const Lines& to, const ThreadTeam& team) const {
  kernels::multiply_step({from, stride, num_lanes()}, weight, bias,
                         {to.of_rank(0), to.stride(), num_lanes()}, team);
}

/// From the frame before to p, the first part of a line.
void FastSteps::prenet(const ThreadTeam& team) const {
  const kernels::cpu::Cells& cells = kernels::cpu::table().cells;
  const ThreadTeam::Range mine = team.range(num_lanes());
  const Lines* from = &frames_;
  for (size_t layer = 0; layer < packs_.prenet.size(); ++layer) {
    const Lines& to = layer + 1 == packs_.prenet.size() ? lines_ : hidden_[layer % 2];
    multiply(from->of_rank(0), from->stride(), packs_.prenet[layer], nullptr, to, team);
    team.wait();
    for (int64_t lane = mine.begin; lane < mine.end; ++lane) {
      float *x = to.of_rank(lane), *mask = masks_.of_rank(lane);
      cells.mask(drops_[layer], lane, false, mask, widths_.prenet);
      for (int64_t j = 0; j < widths_.prenet; ++j) x[j] = std::max(x[j], 0.0f) * mask[j];
    }
    team.wait();
    from = &to;
  }
}

void FastSteps::cell(int64_t lane, const at::Tensor& bias, int64_t h_place, const Lines& c) const {
  const kernels::cpu::Cells& cells = kernels::cpu::table().cells;
  const int64_t units = widths_.units;
  float *h = lines_.of_rank(lane) + h_place, *h_before = h_before_.of_rank(lane);
  float *now = c.of_rank(lane), *next = c_next_.of_rank(lane);
  std::copy_n(h, units, h_before);
  cells.lstm({.x = bias.const_data_ptr<float>(),
              .product = gates_.of_rank(lane),
              .context = nullptr,
              .h_before = h_before,
              .c_before = now,
              .h = h,
              .c = next,
              .gates = gate_values_.of_rank(lane),
              .kept = nullptr,
              .inverse = nullptr,
              .norm = nullptr,
              .width = units});
  if (!keep_.empty()) {
    cells.zoneout(keep_.data(), now, next, units);
    cells.zoneout(keep_.data(), h_before, h, units);
  }
  std::copy_n(next, units, now);
}

void FastSteps::attend(int64_t lane, float* weights) const {
  const kernels::cpu::Cells& cells = kernels::cpu::table().cells;
  const int64_t source = sources_[static_cast<size_t>(lane)], count = memory_.count(source);
  float* last = last_.data_ptr<float>() + memory_.begin(source);
  float* sums = sums_.data_ptr<float>() + memory_.begin(source);
  kernels::cpu::AttendRow item =
      kernels::attend_row(memory_, scorer_, source, queries_.of_rank(lane), weights);
  if (steps_ > 0) item = location_.seen(item, last, sums);
  cells.attend(item, lines_.of_rank(lane) + widths_.context());
  cells.add(weights, sums, count);
  std::copy_n(weights, count, last);
}

void FastSteps::give(int64_t lane, const decoding::FrameStep& out) const {
  const float* from = output_.of_rank(lane);
  const int64_t written = widths_.per_step * widths_.frame;
  std::copy_n(from, written, out.frames.data_ptr<float>() + lane * written);
  float* stop = out.stop.data_ptr<float>() + lane * widths_.per_step;
  for (int64_t i = 0; i < widths_.per_step; ++i) {
    stop[i] = 1.0f / (1.0f + std::exp(-from[written + i]));
  }
  std::copy_n(from + written - widths_.frame, widths_.frame, frames_.of_rank(lane));
}

void FastSteps::work(const decoding::FrameStep& out, const ThreadTeam& team) {
  const ThreadTeam::Range mine = team.range(num_lanes());
  const auto each = [&](const auto& call) {
    team.wait();
    for (int64_t lane = mine.begin; lane < mine.end; ++lane) call(lane);
    team.wait();
  };
  prenet(team);
  multiply_line(0, packs_.lower, nullptr, gates_, team);
  each([&](int64_t lane) { cell(lane, packs_.lower_bias, widths_.h1(), c1_); });
  multiply_line(widths_.h1(), packs_.query, nullptr, queries_, team);
  each([&](int64_t lane) {
    attend(lane, out.weights.data_ptr<float>() + begins_[static_cast<size_t>(lane)]);
  });
  multiply_line(widths_.h1(), packs_.upper, nullptr, gates_, team);
  each([&](int64_t lane) { cell(lane, packs_.upper_bias, widths_.h2(), c2_); });
  multiply_line(widths_.context(), packs_.output, packs_.output_bias.const_data_ptr<float>(),
                output_, team);
  each([&](int64_t lane) { give(lane, out); });
}

void FastSteps::step(const decoding::FrameStep& out) {
  auto* keys = step_keys_.mutable_data_ptr<int64_t>();
  for (size_t i = 0; i < sentence_keys_.size(); ++i) {
    keys[i] = prenet_step_key(sentence_keys_[i], steps_);
  }
  team_.run(packs_.numbers() * num_lanes(),
            [this, &out](const ThreadTeam& team) { work(out, team); });
  ++steps_;
}

void FastSteps::keep(std::span<const int64_t> lanes) {
  for (size_t i = 0; i < lanes.size(); ++i) {
    const auto from = static_cast<size_t>(lanes[i]);
    for (auto* all : {&sources_, &rows_, &sentence_keys_}) (*all)[i] = (*all)[from];
    if (from == i) continue;
    for (const Lines* all : {&lines_, &frames_, &c1_, &c2_}) {
      std::copy_n(all->of_rank(lanes[i]), all->stride(), all->of_rank(static_cast<int64_t>(i)));
    }
  }
  for (auto* all : {&sources_, &rows_, &sentence_keys_}) all->resize(lanes.size());
  find_begins();
}

/// A memory as rectangles, a row for each lane.
struct LaneMemory {
  at::Tensor keys, values;  ///< [L, longest, …]
  at::Tensor is_row;        ///< bool [L, longest]

  explicit LaneMemory(const kernels::Memory& memory) {
    const at::Tensor offsets = memory.offsets.values.to(at::kLong);
    const at::Tensor begins = offsets.slice(0, 0, -1).unsqueeze(1);
    const at::Tensor counts = at::diff(offsets).unsqueeze(1);
    const auto longest = counts.max().item<int64_t>();
    const at::Tensor places = at::arange(longest, offsets.options()).unsqueeze(0);
    is_row = places.lt(counts);
    const at::Tensor index = (begins + places).clamp_max(memory.keys.size(0) - 1).flatten();
    const auto padded = [&](const at::Tensor& x) {
      return x.index_select(0, index).view({counts.size(0), longest, x.size(1)});
    };
    keys = padded(memory.keys);
    values = padded(memory.values);
  }
};

class PlainSteps : public decoding::FrameModel {
 public:
  PlainSteps(const Tacotron2StepWeights& weights, const kernels::Memory& memory,
             const at::Tensor& sentence_keys, uint64_t prenet_seed);

  int64_t frame_width() const override { return weights_.frame_width; }
  int64_t frames_per_step() const override { return weights_.frames_per_step; }
  const std::vector<int64_t>& source_rows() const override { return rows_; }
  at::TensorOptions like() const override { return memory_.keys.options(); }
  void step(const decoding::FrameStep& out) override;
  void keep(std::span<const int64_t> lanes) override;

 private:
  struct State {
    at::Tensor h, c;
  };
  at::Tensor prenet() const;
  State cell(const at::Tensor& gates, const State& before) const;
  at::Tensor attend();

  Tacotron2StepWeights weights_;
  LaneMemory memory_;
  std::vector<int64_t> rows_;
  std::vector<int64_t> sentence_keys_;
  uint64_t prenet_seed_;
  double share_;
  State lower_, upper_;
  at::Tensor context_, frame_, last_, sums_;
  int64_t steps_ = 0;
};

PlainSteps::PlainSteps(const Tacotron2StepWeights& weights, const kernels::Memory& memory,
                       const at::Tensor& sentence_keys, uint64_t prenet_seed)
    : weights_(weights),
      memory_(memory),
      prenet_seed_(prenet_seed),
      share_(static_cast<double>(std::lround(weights.zoneout * 65536)) / 65536.0) {
  const at::Tensor counts = at::diff(memory.offsets.values.to(at::kCPU, at::kLong));
  const int64_t lanes = counts.numel();
  const StepWidths widths(weights);
  for (int64_t i = 0; i < lanes; ++i) {
    rows_.push_back(counts[i].item<int64_t>());
    sentence_keys_.push_back(sentence_keys[i].item<int64_t>());
  }
  const auto zeros = [&](int64_t width) { return at::zeros({lanes, width}, like()); };
  lower_ = {zeros(widths.units), zeros(widths.units)};
  upper_ = {zeros(widths.units), zeros(widths.units)};
  context_ = zeros(widths.memory);
  frame_ = zeros(widths.frame);
  last_ = zeros(memory_.keys.size(1));
  sums_ = zeros(memory_.keys.size(1));
}

at::Tensor PlainSteps::prenet() const {
  std::vector<int64_t> keys;
  for (const int64_t key : sentence_keys_) keys.push_back(prenet_step_key(key, steps_));
  const nn::DropoutSource masks =
      prenet_masks_of_step(prenet_seed_, at::tensor(keys, at::kLong).to(frame_.device()));
  at::Tensor x = frame_;
  for (size_t i = 0; i < weights_.prenet.size(); ++i) {
    x = kernels::dropout(kernels::linear(x, weights_.prenet[i]).relu(),
                         masks.at(weights_.prenet_dropout, kSynthesisPrenet + i));
  }
  return x;
}

PlainSteps::State PlainSteps::cell(const at::Tensor& gates, const State& before) const {
  const std::vector<at::Tensor> parts = gates.chunk(4, 1);
  const at::Tensor c =
      at::sigmoid(parts[1]) * before.c + at::sigmoid(parts[0]) * at::tanh(parts[2]);
  const at::Tensor h = at::sigmoid(parts[3]) * at::tanh(c);
  return {share_ * before.h + (1 - share_) * h, share_ * before.c + (1 - share_) * c};
}

/// Attention weights [L, longest].
at::Tensor PlainSteps::attend() {
  const kernels::AttentiveWeights& own = weights_.lower;
  at::Tensor keys = memory_.keys + kernels::linear(lower_.h, own.query).unsqueeze(1);
  if (steps_ > 0) {
    const int64_t kernel = own.location.size(1) / 2;
    keys = keys + at::conv1d(at::stack({last_, sums_}, 1),
                             own.location.reshape({own.location.size(0), 2, kernel}), {}, 1,
                             kernel / 2)
                      .transpose(1, 2);
  }
  const at::Tensor scores = at::matmul(at::tanh(keys), own.score);
  return at::softmax(scores.masked_fill(memory_.is_row.logical_not(), -HUGE_VAL), 1);
}

void PlainSteps::step(const decoding::FrameStep& out) {
  const at::NoGradGuard no_grad;
  const kernels::AttentiveWeights& own = weights_.lower;
  lower_ = cell(kernels::linear(prenet(), weights_.lower_input, weights_.lower_bias) +
                    kernels::linear(context_, own.context) +
                    kernels::linear(lower_.h, own.recurrent.hidden),
                lower_);
  last_ = attend();
  sums_ = sums_ + last_;
  context_ = at::matmul(last_.unsqueeze(1), memory_.values).squeeze(1);
  upper_ = cell(
      kernels::linear(at::cat({lower_.h, context_}, 1), weights_.upper_input, weights_.upper_bias) +
          kernels::linear(upper_.h, weights_.upper_hidden),
      upper_);
  const at::Tensor all =
      kernels::linear(at::cat({upper_.h, context_}, 1), weights_.output, weights_.output_bias);
  const int64_t written = frames_per_step() * frame_width();
  out.frames.copy_(all.narrow(1, 0, written));
  out.stop.copy_(at::sigmoid(all.narrow(1, written, frames_per_step())));
  out.weights.copy_(last_.masked_select(memory_.is_row));
  frame_ = all.narrow(1, written - frame_width(), frame_width());
  ++steps_;
}

void PlainSteps::keep(std::span<const int64_t> lanes) {
  const at::Tensor kept =
      at::tensor(at::ArrayRef<int64_t>(lanes.data(), lanes.size()), at::kLong).to(frame_.device());
  for (at::Tensor* x : {&lower_.h, &lower_.c, &upper_.h, &upper_.c, &context_, &frame_, &last_,
                        &sums_, &memory_.keys, &memory_.values, &memory_.is_row}) {
    *x = x->index_select(0, kept);
  }
  for (auto* all : {&rows_, &sentence_keys_}) {
    for (size_t i = 0; i < lanes.size(); ++i) (*all)[i] = (*all)[static_cast<size_t>(lanes[i])];
    all->resize(lanes.size());
  }
}

}  // namespace

std::unique_ptr<decoding::FrameModel> make_plain_tacotron2_steps(
    const Tacotron2StepWeights& weights, const kernels::Memory& memory,
    const at::Tensor& sentence_keys, uint64_t prenet_seed) {
  const at::NoGradGuard no_grad;
  return std::make_unique<PlainSteps>(weights, memory, sentence_keys.to(at::kCPU), prenet_seed);
}

std::unique_ptr<decoding::FrameModel> make_tacotron2_steps(const Tacotron2StepWeights& weights,
                                                           const kernels::Memory& memory,
                                                           const at::Tensor& sentence_keys,
                                                           uint64_t prenet_seed) {
  const at::NoGradGuard no_grad;
  const bool is_fast = memory.keys.is_cpu() && memory.keys.scalar_type() == at::kFloat &&
                       weights.output.scalar_type() == at::kFloat &&
                       kernels::ComputeScope::current() == kernels::Compute::kFp32;
  if (!is_fast) return make_plain_tacotron2_steps(weights, memory, sentence_keys, prenet_seed);
  return std::make_unique<FastSteps>(weights, memory, sentence_keys.to(at::kCPU), prenet_seed);
}

}  // namespace stretto::models
