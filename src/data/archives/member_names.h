#pragma once

#include <string>
#include <string_view>

/// What the names of members of an archive say.
namespace stretto::data {

/// The name of a member as a path below the folder that the archive holds: without "./", double and
/// final slashes.
/// @param fault  what is wrong with it, else empty: "its name is absolute", "its name leads out of
///               the archive", "it has no name", "its name has a control character"
std::string member_path(std::string_view name, std::string& fault);

/// Whether it, or a folder above it, begins with a dot.
bool is_hidden_path(std::string_view path);

/// The folder of a path: "train/cat" of "train/cat/1.jpg"; empty where it lies in none.
std::string_view folder_of_path(std::string_view path);
/// The name behind its folders: "1.jpg" of "train/cat/1.jpg".
std::string_view last_of_path(std::string_view path);

/// A path as WebDataset takes it: the key ends at the first dot of the last name.
struct ShardName {
  std::string_view key;  ///< with its folders
  std::string field;     ///< what follows the dot, in lower case: "jpg", "cls", "seg.png"
};
ShardName shard_name(std::string_view path);

/// Whether a field of WebDataset is a picture of a sample: jpg, jpeg, png, webp and others that
/// people use; whether it can be read is told by its bytes.
bool is_picture_field(std::string_view field);

}  // namespace stretto::data
