#include "models/synthesis/decoder_steps.h"

#include <ATen/ATen.h>

#include <optional>

#include "kernels/convolution/convolution.h"
#include "models/packed.h"

namespace stretto::models {

at::Tensor sequence_of_rows(const kernels::Offsets& offsets, int64_t count) {
  const at::Tensor lengths = at::diff(offsets.values.to(at::kLong));
  // The stated size spares a wait for a GPU.
  return at::repeat_interleave(lengths, std::optional<int64_t>(count));
}

DecoderSteps::DecoderSteps(const nn::PackedRows& frames, int64_t width, int64_t reduction)
    : reduction_(reduction) {
  TORCH_CHECK(frames.values.defined() && frames.values.dim() == 2 && frames.values.size(1) >= width,
              "[synthesis] frames must be [N, ", width, "] or wider, got ",
              frames.values.defined() ? frames.values.sizes() : at::IntArrayRef{});
  const kernels::Offsets offsets =
      kernels::output_offsets({.offsets = frames.offsets, .stride = reduction});
  const auto count = offsets.values[-1].item<int64_t>();
  rows_ = behind_stride(frames, reduction, at::empty({count, 0}, frames.values.options()));
  const at::Tensor sequence = sequence_of_rows(rows_.offsets, count);
  const at::Tensor read =
      first_places(frames.offsets).index_select(0, sequence) + rows_.positions * reduction - 1;
  rows_.values = frames.values.narrow(1, 0, width)
                     .index_select(0, read.clamp_min(0))
                     .masked_fill(rows_.positions.eq(0).unsqueeze(1), 0);
  if (reduction == 1) return;
  const at::Tensor of_frame = sequence_of_rows(frames.offsets, frames.values.size(0));
  places_ = first_places(rows_.offsets).index_select(0, of_frame) * reduction + frames.positions;
}

at::Tensor DecoderSteps::of_frames(const at::Tensor& written) const {
  if (!places_.defined()) return written;
  const at::Tensor all = written.reshape({-1, written.size(1) / reduction_});
  return all.index_select(0, places_);
}

}  // namespace stretto::models
