#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stretto::testing {

/// Writes pickles instruction by instruction, as torch.save does or as nobody should.
class PickleWriter {
 public:
  std::string bytes = std::string("\x80\x02", 2);

  PickleWriter& raw(const std::string& text) {
    bytes += text;
    return *this;
  }
  PickleWriter& text(const std::string& value) {
    bytes += 'X';
    return number4(static_cast<uint32_t>(value.size())).raw(value);
  }
  PickleWriter& number4(uint32_t value) {
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
    return *this;
  }
  PickleWriter& integer(int64_t value) {
    bytes += "\x8a\x08";
    for (int i = 0; i < 8; ++i) {
      bytes += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xFF);
    }
    return *this;
  }
  PickleWriter& integers(const std::vector<int64_t>& values) {
    raw("(");
    for (const int64_t value : values) integer(value);
    return raw("t");
  }
  PickleWriter& global(const std::string& module, const std::string& name) {
    return raw("c" + module + "\n" + name + "\n");
  }
  PickleWriter& storage(const std::string& key, int64_t elements,
                        const std::string& type = "FloatStorage") {
    raw("(").text("storage").global("torch", type).text(key).text("cpu").integer(elements);
    return raw("tQ");
  }
  PickleWriter& tensor(const std::string& key, int64_t elements, int64_t offset,
                       const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                       const std::string& type = "FloatStorage") {
    global("torch._utils", "_rebuild_tensor_v2").raw("(").storage(key, elements, type);
    integer(offset).integers(sizes).integers(strides).raw("\x89");
    return global("collections", "OrderedDict").raw(")RtR");
  }
};

/// A zip archive of these members, uncompressed unless asked.
inline std::string zipped(const std::vector<std::pair<std::string, std::string>>& members,
                          bool compressed = false) {
  std::string bytes(size_t{1} << 20, '\0');
  size_t used = 0;
  archive* zip = archive_write_new();
  archive_write_set_format_zip(zip);
  archive_write_set_options(zip, compressed ? "zip:compression=deflate" : "zip:compression=store");
  archive_write_open_memory(zip, bytes.data(), bytes.size(), &used);
  for (const auto& [name, data] : members) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(data.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_write_header(zip, entry);
    archive_write_data(zip, data.data(), data.size());
    archive_entry_free(entry);
  }
  archive_write_close(zip);
  archive_write_free(zip);
  bytes.resize(used);
  return bytes;
}

}  // namespace stretto::testing
