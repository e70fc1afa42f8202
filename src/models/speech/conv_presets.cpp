#include <array>
#include <cstdint>

#include "models/speech/jasper_options.h"
#include "models/speech/las_options.h"
#include "models/speech/quartznet_options.h"
#include "models/speech/wave2letter_options.h"

namespace stretto::models {
namespace {

using ConvBlocks = std::vector<ConvBlockOptions>;

/// What blocks of one kind differ in.
struct ConvWidth {
  int64_t kernel, channels;
  double dropout;
};

constexpr std::array<ConvWidth, 5> kJasperWidths{{
    {11, 256, 0.2},
    {13, 384, 0.2},
    {17, 512, 0.2},
    {21, 640, 0.3},
    {25, 768, 0.3},
}};

ConvBlockOptions block_of(const ConvWidth& width, int64_t repeat = 1) {
  ConvBlockOptions block;
  block.repeat = repeat;
  block.kernel = width.kernel;
  block.channels = width.channels;
  block.dropout = width.dropout;
  return block;
}

ConvBlockOptions with_stride(ConvBlockOptions block) {
  block.stride = 2;
  return block;
}

/// The last two convolutions of Wave2Letter+ and of Jasper.
void add_wide_end(ConvBlocks& blocks, int64_t channels, int64_t last_channels) {
  blocks.push_back(block_of({29, channels, 0.4}));
  blocks.back().dilation = 2;
  blocks.push_back(block_of({1, last_channels, 0.4}));
}

ConvBlocks wave2letter(const std::array<ConvWidth, 5>& widths, int64_t repeat) {
  ConvBlocks blocks{with_stride(block_of(widths[0]))};
  for (const ConvWidth& width : widths) blocks.push_back(block_of(width, repeat));
  return blocks;
}

ConvBlocks wave2letter_plus() {
  ConvBlocks blocks = wave2letter(kJasperWidths, 3);
  add_wide_end(blocks, 896, 1024);
  return blocks;
}

ConvBlocks wave2letter_small() {
  ConvBlocks blocks = wave2letter(
      {{{11, 96, 0.2}, {13, 128, 0.2}, {17, 160, 0.2}, {21, 192, 0.3}, {25, 224, 0.3}}}, 1);
  add_wide_end(blocks, 256, 320);
  return blocks;
}

ConvBlocks jasper(int64_t repeat, const char* residual) {
  ConvBlocks blocks{with_stride(block_of(kJasperWidths[0]))};
  for (const ConvWidth& width : kJasperWidths) {
    ConvBlockOptions block = block_of(width, repeat);
    block.residual = residual;
    blocks.insert(blocks.end(), 2, block);
  }
  add_wide_end(blocks, 896, 1024);
  return blocks;
}

/// A convolution with a stride, and `each` blocks for each width, all separable.
void add_separable(ConvBlocks& blocks, const std::array<ConvWidth, 5>& widths, int64_t repeat,
                   int64_t each) {
  blocks.push_back(with_stride(block_of(widths[0])));
  blocks.back().separable = true;
  for (const ConvWidth& width : widths) {
    ConvBlockOptions block = block_of(width, repeat);
    block.residual = "block";
    block.separable = true;
    blocks.insert(blocks.end(), static_cast<size_t>(each), block);
  }
}

ConvBlocks jasper_mini() {
  ConvBlocks blocks;
  add_separable(blocks, {{{11, 256, 0}, {13, 256, 0}, {17, 512, 0}, {21, 512, 0}, {25, 512, 0}}}, 3,
                2);
  ConvBlockOptions last = block_of({29, 512, 0});
  last.dilation = 2;
  last.separable = true;
  blocks.push_back(last);
  last = block_of({1, 1024, 0});
  last.separable = true;
  blocks.push_back(last);
  return blocks;
}

ConvBlocks jasper_commands() {
  ConvBlocks blocks;
  for (const ConvWidth& width : kJasperWidths) {
    if (width.kernel <= 17) blocks.push_back(with_stride(block_of(width)));
    ConvBlockOptions block = block_of(width, 3);
    block.residual = "block";
    blocks.insert(blocks.end(), 2, block);
  }
  add_wide_end(blocks, 896, 1024);
  return blocks;
}

ConvBlocks quartznet(int64_t num_blocks) {
  ConvBlocks blocks;
  add_separable(blocks, {{{33, 256, 0}, {39, 256, 0}, {51, 512, 0}, {63, 512, 0}, {75, 512, 0}}}, 5,
                num_blocks / 5);
  ConvBlockOptions last = block_of({87, 512, 0});
  last.dilation = 2;
  last.separable = true;
  blocks.push_back(last);
  blocks.push_back(block_of({1, 1024, 0}));
  return blocks;
}

ConvBlocks las_large() {
  ConvBlocks blocks{with_stride(block_of({11, 256, 0.2})), block_of({11, 256, 0.2}, 7),
                    with_stride(block_of({11, 384, 0.2})), block_of({11, 512, 0.2}, 3),
                    block_of({11, 768, 0.3}, 4)};
  return blocks;
}

ConvBlocks las_small() {
  ConvBlocks blocks{with_stride(block_of({11, 96, 0.2})), block_of({11, 96, 0.2}),
                    with_stride(block_of({11, 128, 0.2})), block_of({11, 192, 0.2}),
                    block_of({11, 256, 0.3})};
  return blocks;
}

}  // namespace

const std::vector<ConvPreset>& presets_of(const LasOptions& /*options*/) {
  static const std::vector<ConvPreset> presets{{"las_large", las_large()},
                                               {"las_small", las_small()}};
  return presets;
}

const std::vector<ConvPreset>& presets_of(const Wave2LetterOptions& /*options*/) {
  static const std::vector<ConvPreset> presets{{"wave2letter_plus", wave2letter_plus()},
                                               {"wave2letter_small", wave2letter_small()}};
  return presets;
}

const std::vector<ConvPreset>& presets_of(const JasperOptions& /*options*/) {
  static const std::vector<ConvPreset> presets{{"jasper_10x5_dr", jasper(5, "dense")},
                                               {"jasper_10x5", jasper(5, "block")},
                                               {"jasper_10x3", jasper(3, "block")},
                                               {"jasper_mini", jasper_mini()},
                                               {"jasper_commands", jasper_commands()}};
  return presets;
}

const std::vector<ConvPreset>& presets_of(const QuartzNetOptions& /*options*/) {
  static const std::vector<ConvPreset> presets{{"quartznet_15x5", quartznet(15)},
                                               {"quartznet_10x5", quartznet(10)},
                                               {"quartznet_5x5", quartznet(5)}};
  return presets;
}

}  // namespace stretto::models
