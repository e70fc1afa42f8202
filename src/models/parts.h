#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nn/embedding.h"
#include "nn/init.h"

namespace stretto::models {

/// What a part of a model (an encoder, a decoder) is built from beside its options.
struct PartSetup {
  nn::Init init;          ///< already at the part's own name: "encoder", "decoder"
  int64_t d_model = 512;  ///< width of token vectors, and of rows unless a part says
  /// The width of an encoder's rows that a decoder attends to; nothing = it has no memory, and is a
  /// language model.
  std::optional<int64_t> memory_width = std::nullopt;
  int64_t rows = 0;                      ///< of its embedding table; 0 = it reads rows of values
  int64_t pad = -1;                      ///< row of that table that starts at zero; -1 = none
  nn::Embedding embedding = nullptr;     ///< the table of another part to use too; null = its own
  std::string embedding_scale = "auto";  ///< model.embedding_scale: see models/embedding_options.h
  /// How the rows of its table start where other parts look it up too; else it decides itself.
  std::optional<nn::InitRule> shared_rows = std::nullopt;
  /// Dropout sites of the part are first_site, first_site + 1, …: two parts have none in common.
  uint64_t first_site = 0;
};

/// Sites of dropout: each part has a range of its own. Changing these numbers changes every mask,
/// and with it every run.
constexpr uint64_t kSitesPerPart = 1'000'000;
/// Sites of a model's encoder 0 and decoder 0; those of further ones follow.
constexpr uint64_t kEncoderSites = 1'000'000, kDecoderSites = 2'000'000;
/// Sites of the second encoder of a model that reads two sources.
constexpr uint64_t kSecondEncoderSites = 11'000'000;
/// Sites of an encoder of text, and of the head behind it.
constexpr uint64_t kTextEncoderSites = 21'000'000, kTextHeadSites = 22'000'000;
/// Sites of a model that writes frames of sound.
constexpr uint64_t kSynthesisSites = 51'000'000;
/// Sites of a model of pictures.
constexpr uint64_t kImageSites = 31'000'000;
/// Sites of an encoder of speech, and of a decoder behind it.
constexpr uint64_t kSpeechSites = 41'000'000, kSpeechDecoderSites = 42'000'000;
/// The site of a part's embedding, counted from the part's first site.
constexpr uint64_t kEmbeddingSite = 999'999;
/// Likewise the site of the rows that leave ConvS2S's decoder.
constexpr uint64_t kConvOutputSite = 999'998;
/// The site of the words of a part's input (word dropout).
constexpr uint64_t kWordSite = 999'997;
/// The site of the words of a vocabulary (embedding dropout), which have one mask in an update.
constexpr uint64_t kVocabularySite = 999'996;
/// Sites of whole layers (LayerDrop), one for each; what a layer drops is numbered from 0 on.
constexpr uint64_t kLayerDropSites = 700'000;
/// Sites of the input of lightweight and dynamic convolutions, one for each layer.
constexpr uint64_t kLightInputSites = 500'000;

}  // namespace stretto::models
