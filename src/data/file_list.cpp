#include "data/file_list.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "base/allowance.h"
#include "base/base64.h"
#include "base/hash.h"
#include "base/text.h"

namespace stretto::data {
namespace {

constexpr size_t kShownName = 4096;
constexpr uint64_t kMaxListedName = 4096;  // no path is longer
constexpr size_t kListedHashBytes = sizeof(uint64_t);

void append_number(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

uint64_t take_number(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (bytes.empty()) break;
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  throw std::invalid_argument("a list of files is cut short");
}

void append_fixed(uint64_t value, std::string& out) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string_view take_bytes(std::string_view& bytes, uint64_t count) {
  if (count > bytes.size()) throw std::invalid_argument("a list of files is cut short");
  const auto taken = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return taken;
}

/// A block: how much of its name is that of the name before it, the rest, size and hash.
std::string encoded(const FileList& list) {
  std::string out;
  std::string_view last;
  for (size_t i = 0; i < list.hashes.size(); ++i) {
    const std::string_view name = list.names[i];
    const auto [at, ignored] = std::mismatch(name.begin(), name.end(), last.begin(), last.end());
    const auto shared = static_cast<size_t>(at - name.begin());
    append_number(shared, out);
    append_number(name.size() - shared, out);
    out += name.substr(shared);
    append_number(list.sizes[i], out);
    append_fixed(list.hashes[i], out);
    last = name;
  }
  return out;
}

void decode(std::string_view bytes, FileList& list) {
  Allowance allowance("a list of files", bytes.size());
  uint64_t sum = 0;
  for (std::string name; !bytes.empty();) {
    const uint64_t shared = take_number(bytes), rest = take_number(bytes);
    if (shared > name.size() || rest > kMaxListedName || shared + rest > kMaxListedName) {
      throw std::invalid_argument("a list of files has a name that no file has");
    }
    name.resize(shared);
    name += take_bytes(bytes, rest);
    allowance.take(name.size() + 3 * kListedHashBytes, "its names");
    list.names.add(name);
    list.sizes.push_back(take_number(bytes));
    sum += list.sizes.back();
    std::memcpy(&list.hashes.emplace_back(), take_bytes(bytes, kListedHashBytes).data(),
                kListedHashBytes);
  }
  if (sum != list.bytes) throw std::invalid_argument("files have another size than their list");
}

/// What is hashed of one file.
void append_file(const FileList& list, size_t number, std::string& text) {
  text += list.names[number];
  text += '\0';
  append_fixed(list.sizes[number], text);
  append_fixed(list.hashes[number], text);
}

uint64_t hash_of_all(const FileList& list) {
  Xxh3Stream all;
  std::string text;
  for (size_t i = 0; i < list.hashes.size(); ++i) {
    text.clear();
    append_file(list, i, text);
    all.update(text.data(), text.size());
  }
  return all.digest();
}

std::string shown_count(uint64_t count) {
  return with_thousands(static_cast<int64_t>(count));
}

std::string counted_files(uint64_t count) {
  return counted(static_cast<int64_t>(count), "file");
}

std::string shown_name(std::string_view name) {
  return printable(name, kShownName);
}

std::string change_of(const FileList& before, size_t then, const FileList& now, size_t at) {
  if (before.sizes[then] == now.sizes[at]) return "has changed";
  return "has changed (" + counted(static_cast<int64_t>(now.sizes[at]), "byte") + " now, " +
         shown_count(before.sizes[then]) + " then)";
}

/// What differs between two sorted lists with a block for each file.
struct TreeChanges {
  std::vector<std::pair<size_t, size_t>> changed;  ///< before, now
  std::vector<size_t> gone, fresh;

  size_t size() const { return changed.size() + gone.size() + fresh.size(); }
};

TreeChanges changes_between(const FileList& before, const FileList& now) {
  TreeChanges found;
  size_t then = 0, at = 0;
  while (then < before.hashes.size() || at < now.hashes.size()) {
    const bool has_then = then < before.hashes.size(), has_now = at < now.hashes.size();
    const int order = has_then && has_now ? before.names[then].compare(now.names[at])
                      : has_then          ? -1
                                          : 1;
    if (order < 0) {
      found.gone.push_back(then++);
    } else if (order > 0) {
      found.fresh.push_back(at++);
    } else {
      const bool is_same =
          before.hashes[then] == now.hashes[at] && before.sizes[then] == now.sizes[at];
      if (!is_same) found.changed.emplace_back(then, at);
      ++then;
      ++at;
    }
  }
  return found;
}

/// "2 files changed, 1 new, 1 gone"
std::string counts_of(const TreeChanges& found) {
  std::vector<std::string> parts;
  if (!found.changed.empty()) parts.push_back(counted_files(found.changed.size()) + " changed");
  if (!found.fresh.empty()) parts.push_back(shown_count(found.fresh.size()) + " new");
  if (!found.gone.empty()) parts.push_back(shown_count(found.gone.size()) + " gone");
  return join(parts, ", ");
}

/// The file among others that has the content of one; null where there is none.
const size_t* same_content(const FileList& list, const std::vector<size_t>& among,
                           const FileList& other, size_t number) {
  const auto found = std::find_if(among.begin(), among.end(), [&](size_t one) {
    return list.hashes[one] == other.hashes[number] && list.sizes[one] == other.sizes[number];
  });
  return found == among.end() ? nullptr : &*found;
}

std::string moved(std::string_view before, std::string_view now) {
  return shown_name(before) + " has the name " + shown_name(now) + " now";
}

/// The first change in the order of names, and how many of its kinds are told with it.
std::string first_change(const FileList& before, const FileList& now, const TreeChanges& found,
                         size_t& told) {
  std::string_view name;
  std::string text;
  const auto take = [&](std::string_view other, std::string&& words, size_t tells) {
    if (!text.empty() && name <= other) return;
    name = other;
    text = std::move(words);
    told = tells;
  };
  if (!found.changed.empty()) {
    const auto& [then, at] = found.changed.front();
    take(now.names[at], shown_name(now.names[at]) + " " + change_of(before, then, now, at), 1);
  }
  if (!found.gone.empty()) {
    const std::string_view gone = before.names[found.gone.front()];
    const size_t* twin = same_content(now, found.fresh, before, found.gone.front());
    take(gone, twin == nullptr ? shown_name(gone) + " is gone" : moved(gone, now.names[*twin]),
         twin == nullptr ? 1 : 2);
  }
  if (!found.fresh.empty()) {
    const std::string_view fresh = now.names[found.fresh.front()];
    const size_t* twin = same_content(before, found.gone, now, found.fresh.front());
    take(fresh, twin == nullptr ? shown_name(fresh) + " is new" : moved(before.names[*twin], fresh),
         twin == nullptr ? 1 : 2);
  }
  return text;
}

/// The first block that differs; the number of blocks where none does.
size_t first_differing_block(const FileList& before, const FileList& now) {
  const size_t both = std::min(before.hashes.size(), now.hashes.size());
  for (size_t i = 0; i < both; ++i) {
    if (before.hashes[i] != now.hashes[i] || before.sizes[i] != now.sizes[i]) return i;
  }
  return both;
}

}  // namespace

void NameList::add(std::string_view name) {
  text_ += name;
  ends_.push_back(text_.size());
}

std::string_view NameList::operator[](size_t number) const {
  const size_t begin = number == 0 ? 0 : ends_[number - 1];
  return std::string_view(text_).substr(begin, ends_[number] - begin);
}

FileList list_of(const ListedFiles& files, DataKind kind) {
  FileList list{.files = files.files().size()};
  for (const auto& file : files.files()) {
    list.names.add(kind == DataKind::kTree ? std::string_view(file.name) : std::string_view());
    list.sizes.push_back(file.size);
    list.hashes.push_back(file.hash);
    list.bytes += file.size;
  }
  list.hash = hash_of_all(list);
  return list;
}

FileList coarsened(const FileList& list, uint64_t files_per_block) {
  if (files_per_block == 1) return list;
  FileList coarse{.files = list.files,
                  .bytes = list.bytes,
                  .hash = list.hash,
                  .files_per_block = files_per_block};
  std::string text;
  for (size_t begin = 0; begin < list.hashes.size(); begin += files_per_block) {
    const size_t end = std::min<size_t>(list.hashes.size(), begin + files_per_block);
    text.clear();
    uint64_t bytes = 0;
    for (size_t i = begin; i < end; ++i) {
      append_file(list, i, text);
      bytes += list.sizes[i];
    }
    coarse.names.add(list.names[begin]);
    coarse.sizes.push_back(bytes);
    coarse.hashes.push_back(xxh3_64(text));
  }
  return coarse;
}

size_t encoded_bytes(const FileList& list) {
  return encoded(list).size();
}

nlohmann::json list_to_json(const FileList& list) {
  return {{"files", list.files},
          {"bytes", list.bytes},
          {"hash", hex64(list.hash)},
          {"files_per_block", list.files_per_block},
          {"blocks", base64(encoded(list))}};
}

FileList list_from_json(const nlohmann::json& json, DataKind kind) {
  FileList list{.files = json.at("files").get<uint64_t>(),
                .bytes = json.at("bytes").get<uint64_t>(),
                .hash = hash_from_hex(json.at("hash").get<std::string>()),
                .files_per_block = json.at("files_per_block").get<uint64_t>()};
  const auto bytes = bytes_of_base64(json.at("blocks").get_ref<const std::string&>());
  if (!bytes) throw std::invalid_argument("a list of files is not base64");
  decode(*bytes, list);
  if (!std::has_single_bit(list.files_per_block) ||
      list.hashes.size() !=
          list.files / list.files_per_block + (list.files % list.files_per_block > 0 ? 1 : 0)) {
    throw std::invalid_argument("another number of blocks than a list has files");
  }
  for (size_t i = 0; i < list.names.size(); ++i) {
    const bool is_in_order = kind == DataKind::kTree ? i == 0 || list.names[i - 1] < list.names[i]
                                                     : list.names[i].empty();
    if (!is_in_order) throw std::invalid_argument("a list of files is not in its order");
  }
  return list;
}

std::string tree_difference(const FileList& before, const FileList& now) {
  if (before.hash == now.hash && before.files == now.files) return "";
  if (before.files_per_block == 1) {
    const auto found = changes_between(before, now);
    if (found.size() == 0) return "has changed";  // of equal lists the hash is equal
    size_t told = 0;
    const std::string first = first_change(before, now, found, told);
    return first + (found.size() > told ? "; in all " + counts_of(found) : "");
  }
  const FileList coarse = coarsened(now, before.files_per_block);
  const size_t block = first_differing_block(before, coarse);
  const std::string sizes =
      " (" + counted_files(now.files) + " now, " + shown_count(before.files) + " then)";
  if (now.files == 0) return "has no file any more" + sizes;
  if (block == coarse.hashes.size()) {
    return "has no file behind " + shown_name(now.names[now.names.size() - 1]) + " any more" +
           sizes;
  }
  return "first differs in one of " + counted_files(before.files_per_block) + " from " +
         shown_name(coarse.names[block]) + " on" + sizes;
}

std::string manifest_difference(const FileList& before, const FileList& now,
                                const ListedFiles& files) {
  if (before.hash == now.hash && before.files == now.files) return "";
  const auto line_of = [&](size_t number) {
    return "line " + with_thousands(files.files()[number].line);
  };
  if (before.files != now.files) {
    return "names " + counted_files(now.files) + ", it named " + shown_count(before.files);
  }
  const FileList coarse = coarsened(now, before.files_per_block);
  size_t changed = 0;
  for (size_t i = 0; i < coarse.hashes.size(); ++i) {
    const bool is_same = before.hashes[i] == coarse.hashes[i] && before.sizes[i] == coarse.sizes[i];
    changed += is_same ? 0 : 1;
  }
  const size_t block = first_differing_block(before, coarse);
  if (block == coarse.hashes.size()) return "has changed";
  const size_t first = block * before.files_per_block;
  if (before.files_per_block > 1) {
    const size_t last = std::min<size_t>(files.files().size(), first + before.files_per_block) - 1;
    return "one of the files that " + line_of(first) + " to " + line_of(last) + " name has changed";
  }
  return line_of(first) + " names " + shown_name(files.files()[first].name) + ", which " +
         change_of(before, first, now, first) +
         (changed > 1 ? "; in all " + counted_files(changed) + " changed" : "");
}

}  // namespace stretto::data
