#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/images/image_data_options.h"
#include "data/images/image_table.h"
#include "data/labelled/labels.h"
#include "data/media/media_table.h"

namespace stretto::data {

/// The classes of a run: `data.classes`, else those of its training pictures in the order of their
/// bytes, as torchvision's ImageFolder has them: "10" comes before "2", and each keeps its name.
/// They are stored with the run by labels_to_json() (data/labelled/labelled_set.h).
/// Throws Error(kBadData) for a folder of a class without any picture, and for a name that is not
/// UTF-8 or has a tab or a line end; Error(kUsage) for less than two classes. Warns of a class of
/// `data.classes` that no picture has.
Labels image_classes(const ImageDataOptions& options, const ImageTable& training);

/// Pictures with the numbers of their classes. Safe to use from several threads.
class ImageSet {
 public:
  /// @param classes  of the run. A set may lack some
  /// Throws Error(kBadData) for a picture of an unknown class, with the name of the class.
  ImageSet(std::shared_ptr<const ImageTable> table, const Labels& classes,
           const BadSampleRule& rule);

  int64_t size() const { return table_->size(); }
  int64_t label(int64_t sample) const { return labels_[static_cast<size_t>(sample)]; }
  const std::vector<int32_t>& labels() const { return labels_; }
  const ImageTable& table() const { return *table_; }

  /// The pixels of a picture; nothing for one that cannot be read or decoded any more, and is
  /// skipped: it is counted once, and named in a warning. Throws as MediaFaults::take().
  std::optional<image::Image> load(int64_t sample, const image::DecodeOptions& options = {}) const;

  /// Bad samples of all kinds so far.
  LeftOut left_out() const { return faults_.left_out(); }

 private:
  std::shared_ptr<const ImageTable> table_;
  std::vector<int32_t> labels_;
  mutable MediaFaults faults_;
};

}  // namespace stretto::data
