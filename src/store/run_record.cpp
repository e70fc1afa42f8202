#include "store/run_record.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "store/owner_mark.h"

namespace stretto::store {
namespace {

namespace fs = std::filesystem;
using RecordJson = nlohmann::ordered_json;

constexpr std::string_view kSealBegin = "# Written by Stretto for run ";
constexpr std::string_view kSealBeginEnd = "; the last line is a checksum.\n";
constexpr std::string_view kSealEnd = "# checksum ";

constexpr std::string_view kMarkBegin = "# mark of who trained: ";

// What stands between the first line and the last one, without the mark at its end.
void take_mark(SealedConfig& config) {
  const std::string_view text = config.toml;
  const size_t last = text.size() < 2 ? 0 : text.rfind('\n', text.size() - 2) + 1;
  if (!text.substr(last).starts_with(kMarkBegin)) return;
  config.mark = trim(text.substr(last + kMarkBegin.size()));
  config.toml.resize(last);
}

std::string checksum_line(std::string_view sealed) {
  return std::string(kSealEnd) + hex64(xxh3_64(sealed)) + "\n";
}

// What is no entry is left out: nothing is trained by it.
std::vector<AcceptedData> accepted_data_of(const nlohmann::json& list) {
  std::vector<AcceptedData> accepted;
  for (const auto& entry : list) {
    try {
      AcceptedData one{.step = entry.at("step").get<int64_t>(),
                       .time = entry.at("time").get<std::string>(),
                       .files = {}};
      for (const auto& file : entry.at("files")) {
        one.files.push_back({file.at("key").get<std::string>(), file.at("path").get<std::string>(),
                             file.at("change").get<std::string>()});
      }
      accepted.push_back(std::move(one));
    } catch (const nlohmann::json::exception&) {
    }
  }
  return accepted;
}

RecordJson accepted_json(const std::vector<AcceptedData>& accepted) {
  RecordJson list = RecordJson::array();
  for (const auto& one : accepted) {
    RecordJson files = RecordJson::array();
    for (const auto& file : one.files) {
      files.push_back({{"key", file.key}, {"path", file.path}, {"change", file.change}});
    }
    list.push_back({{"step", one.step}, {"time", one.time}, {"files", std::move(files)}});
  }
  return list;
}

}  // namespace

std::optional<RunRecord> read_run_record(const fs::path& run_directory) {
  const fs::path path = run_directory / "run.json";
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  const auto json = parse_json(read_file(path, kMaxSmallTextBytes), path.string(), 0);
  const auto text = [&](const char* key) {
    const auto found = json.is_object() ? json.find(key) : json.end();
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  RunRecord record{.run_id = text("run_id"),
                   .config_hashes = {},
                   .created = text("created"),
                   .host = text("host"),
                   .stretto = text("stretto")};
  if (record.run_id.empty()) {
    throw Error(ExitCode::kBadData, path.string() + ": no run_id",
                "the file is damaged; restore it, or train into another --run folder");
  }
  if (const std::string hash = text("config_hash"); !hash.empty()) {
    record.config_hashes.push_back(hash);
  }
  if (json.contains("earlier_config_hashes") && json["earlier_config_hashes"].is_array()) {
    for (const auto& hash : json["earlier_config_hashes"]) {
      if (hash.is_string()) record.config_hashes.push_back(hash.get<std::string>());
    }
  }
  record.has_data_record = json.value("has_data_record", nlohmann::json(false)) == true;
  if (json.contains("accepted_data"))
    record.accepted_data = accepted_data_of(json["accepted_data"]);
  return record;
}

void write_run_record(const fs::path& run_directory, const RunRecord& record) {
  RecordJson json{{"run_id", record.run_id},
                  {"config_hash", record.config_hashes.empty() ? "" : record.config_hashes[0]},
                  {"created", record.created},
                  {"host", record.host},
                  {"stretto", record.stretto}};
  if (record.config_hashes.size() > 1) {
    json["earlier_config_hashes"] =
        std::vector<std::string>(record.config_hashes.begin() + 1, record.config_hashes.end());
  }
  if (record.has_data_record) json["has_data_record"] = true;
  if (!record.accepted_data.empty()) json["accepted_data"] = accepted_json(record.accepted_data);
  write_file_atomic(run_directory / "run.json", json.dump(2) + "\n");
}

FileLock lock_run(const fs::path& run_directory) {
  std::error_code ignored;
  if (fs::exists(run_directory, ignored) && !fs::is_directory(run_directory, ignored)) {
    throw Error(ExitCode::kUsage, run_directory.string() + " is not a folder",
                "give another --run folder");
  }
  make_directories(run_directory);
  return FileLock::try_now(run_directory / ".lock", "stretto train");
}

std::string seal_config(std::string_view toml, std::string_view run_id, std::string_view mark) {
  std::string text = std::string(kSealBegin) + std::string(run_id) + std::string(kSealBeginEnd) +
                     std::string(toml);
  if (!text.ends_with('\n')) text += '\n';
  if (!mark.empty()) text += std::string(kMarkBegin) + std::string(mark) + "\n";
  return text + checksum_line(text);
}

std::string marked_text(std::string_view toml, std::string_view run_id) {
  std::string text = "config.toml of run " + std::string(run_id) + "\n" + std::string(toml);
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

bool SealedConfig::is_own() const {
  return is_own_mark(marked_text(toml, run_id), mark);
}

SealedConfig unseal_config(std::string_view bytes) {
  const size_t first_end = bytes.find('\n');
  const std::string_view first = bytes.substr(0, std::min(first_end, bytes.size() - 1) + 1);
  if (!first.starts_with(kSealBegin) || !first.ends_with(kSealBeginEnd)) {
    return {.state = SealedConfig::State::kUnsealed, .toml = std::string(bytes), .run_id = ""};
  }
  SealedConfig found;
  found.run_id =
      first.substr(kSealBegin.size(), first.size() - kSealBegin.size() - kSealBeginEnd.size());
  const size_t last = bytes.size() < 2 ? 0 : bytes.rfind('\n', bytes.size() - 2) + 1;
  const std::string_view end = bytes.substr(last);
  const bool has_end = last >= first.size() && end.starts_with(kSealEnd);
  found.toml = bytes.substr(first.size(), (has_end ? last : bytes.size()) - first.size());
  if (!has_end || end.size() != checksum_line("").size()) {
    found.state = SealedConfig::State::kCutShort;
  } else {
    found.state = end == checksum_line(bytes.substr(0, last)) ? SealedConfig::State::kWhole
                                                              : SealedConfig::State::kChanged;
  }
  take_mark(found);
  return found;
}

}  // namespace stretto::store
