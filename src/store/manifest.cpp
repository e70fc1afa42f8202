#include "store/manifest.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"

namespace stretto::store {
namespace {

constexpr size_t kMaxManifestBytes = size_t{64} << 20;
constexpr std::string_view kChecksumKey = ",\n  \"manifest_sha256\": \"";

[[noreturn]] void bad_manifest(std::string_view where, const std::string& what) {
  throw Error(ExitCode::kBadData, std::string(where) + ": not a valid manifest: " + what,
              "the checkpoint is damaged; an older one is used when there is one");
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
         });
}

nlohmann::ordered_json to_object(const Manifest& manifest) {
  auto files = nlohmann::ordered_json::array();
  for (const auto& file : manifest.files) {
    nlohmann::ordered_json entry{{"name", file.name}, {"size", file.size}, {"sha256", file.sha256}};
    if (!file.header_sha256.empty()) {
      entry["header_sha256"] = file.header_sha256;
      entry["xxh3_64"] = file.tensors;
    }
    files.push_back(entry);
  }
  nlohmann::ordered_json json{{"format_version", manifest.format_version},
                              {"step", manifest.step},
                              {"run_id", manifest.run_id},
                              {"config_hash", manifest.config_hash}};
  const Provenance& provenance = manifest.provenance;
  if (provenance.world_size != 0) json["world_size"] = provenance.world_size;
  if (!provenance.stretto.empty()) json["stretto"] = provenance.stretto;
  if (!provenance.libtorch.empty()) json["libtorch"] = provenance.libtorch;
  if (!provenance.tokenizer.empty()) json["tokenizer_sha256"] = provenance.tokenizer;
  json["files"] = files;
  return json;
}

// Each key is one that early checkpoints lack.
Provenance parse_provenance(const nlohmann::json& json) {
  Provenance provenance;
  provenance.world_size = json.value("world_size", provenance.world_size);
  provenance.stretto = json.value("stretto", provenance.stretto);
  provenance.libtorch = json.value("libtorch", provenance.libtorch);
  provenance.tokenizer = json.value("tokenizer_sha256", provenance.tokenizer);
  return provenance;
}

ManifestFile parse_file(const nlohmann::json& json, std::string_view where) {
  ManifestFile file{.name = json.at("name").get<std::string>(),
                    .size = json.at("size").get<uint64_t>(),
                    .sha256 = json.at("sha256").get<std::string>(),
                    .header_sha256 = "",
                    .tensors = {}};
  if (!is_plain_name(file.name))
    bad_manifest(where, "bad file name `" + printable(file.name) + "`");
  if (json.contains("header_sha256")) {
    file.header_sha256 = json.at("header_sha256").get<std::string>();
    file.tensors = json.at("xxh3_64").get<std::map<std::string, std::string>>();
  }
  return file;
}

// The checksum covers every byte before its own key.
void verify_checksum(std::string_view bytes, std::string_view where) {
  const size_t at = bytes.rfind(kChecksumKey);
  if (at == std::string_view::npos) bad_manifest(where, "no checksum");
  const std::string expected =
      std::string(kChecksumKey) + sha256_hex(bytes.substr(0, at)) + "\"\n}\n";
  if (bytes.substr(at) != expected) bad_manifest(where, "its checksum is wrong");
}

}  // namespace

std::string Manifest::to_json() const {
  std::string text = to_object(*this).dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  text.resize(text.size() - 2);  // "\n}" comes back behind the checksum
  const std::string sum = sha256_hex(text);
  return text + std::string(kChecksumKey) + sum + "\"\n}\n";
}

Manifest Manifest::from_json(std::string_view bytes, std::string_view where) {
  const auto json = parse_json(bytes, where, kMaxManifestBytes);
  verify_checksum(bytes, where);
  try {
    Manifest manifest;
    manifest.format_version = json.at("format_version").get<int64_t>();
    if (manifest.format_version > kFormatVersion) {
      throw NewerFormat(ExitCode::kBadData,
                        std::string(where) + ": checkpoint format " +
                            std::to_string(manifest.format_version) +
                            ", this stretto reads up to " + std::to_string(kFormatVersion),
                        "use the newer stretto that wrote it");
    }
    if (manifest.format_version < 1) bad_manifest(where, "format_version is below 1");
    manifest.step = json.at("step").get<int64_t>();
    manifest.run_id = json.at("run_id").get<std::string>();
    manifest.config_hash = json.at("config_hash").get<std::string>();
    manifest.provenance = parse_provenance(json);
    if (manifest.provenance.world_size < 0) bad_manifest(where, "world_size is below 0");
    std::set<std::string> names;
    for (const auto& entry : json.at("files")) {
      manifest.files.push_back(parse_file(entry, where));
      const std::string& name = manifest.files.back().name;
      if (!names.insert(name).second) bad_manifest(where, "`" + name + "` stands twice in it");
    }
    return manifest;
  } catch (const nlohmann::json::exception& error) {
    bad_manifest(where, printable(error.what(), 300));
  }
}

Manifest Manifest::read(const std::filesystem::path& checkpoint) {
  const std::filesystem::path path = checkpoint / kManifestName;
  std::error_code error;
  const auto status = std::filesystem::symlink_status(path, error);
  if (!std::filesystem::is_regular_file(status)) {
    const bool missing = status.type() == std::filesystem::file_type::not_found;
    throw Error(ExitCode::kBadData, path.string() + (missing ? ": is missing" : ": is no file"),
                "the checkpoint is damaged; an older one is used when there is one");
  }
  return from_json(read_file(path, kMaxManifestBytes), path.string());
}

}  // namespace stretto::store
