#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

/// Folders as classes.
namespace stretto::data {

/// How many leading folders are no classes, since all samples lie below the same: 1 of train/cat
/// and train/dog. The last folder is always one.
/// @param holding  folders that samples lie in
/// @param all      and others, without samples, which are no reason to go deeper
size_t shared_folders(const std::set<std::string>& holding, const std::set<std::string>& all);

/// The folder behind so many; empty where there is none.
std::string_view folder_at(std::string_view path, size_t depth);

/// Throws Error(kUsage) where all classes are the sets of a data set: train and test.
/// @param where  the folder or the archives
void require_no_sets(const std::set<std::string>& classes, const std::string& where);

}  // namespace stretto::data
