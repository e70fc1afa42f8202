#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/bad_samples.h"
#include "data/images/image_source.h"
#include "data/images/pixel_files.h"

namespace stretto::data {

/// Pictures whose pixels are held in memory as they are: such sets are small, and decoding them is
/// a copy. Classes are the numbers of labels in decimal, or have the names of a list.
/// @param path   of the file, for places
/// @param names  of the classes in the order of their numbers; empty: the numbers are the names
/// Throws Error(kBadData) for a label that has no name.
std::shared_ptr<const ImageSource> make_pixel_images(const std::string& path, PixelArray array,
                                                     std::vector<std::string> names,
                                                     LeftOut left_out);

/// The same of two idx files, gzip or not. Throws as read_idx_images() does, and Error(kBadData)
/// where they have different numbers of samples.
std::shared_ptr<const ImageSource> open_idx(const std::string& images, const std::string& labels);

/// The same of a file of CIFAR.
/// @param names_file  with a name a line (batches.meta.txt), each another one; empty: there is none
std::shared_ptr<const ImageSource> open_cifar(const std::string& path, CifarKind kind,
                                              const std::string& names_file,
                                              const BadSampleRule& rule);

}  // namespace stretto::data
