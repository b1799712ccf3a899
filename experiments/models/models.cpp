// Which of the families of Hugging Face transformers are read from their config.json, and how well: see README.md
// beside this file.
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "workload/model.h"

namespace {

using namespace krigtune;

using Counts = std::map<std::string, int>;  // families by verdict

// Writes one row: what the family's default configuration has in PyTorch, and what is read from it.
void add_row(const Json& family, Counts& counts) {
  constexpr double kNear = 0.01;
  const auto published = family.at("parameters").get<std::int64_t>();
  const auto name = family.at("model_type").get<std::string>();
  workload::Caveats caveats;
  std::int64_t counted = 0;
  try {
    const Json& config = family.at("config");
    Json model{{"hf_config", config}};
    const bool says_length = config.contains("max_position_embeddings") || config.contains("n_positions") ||
                             config.contains("max_target_positions");
    if (!says_length) model["seq_len"] = 2048;
    counted = parameter_count(workload::read_model(model, name, "", {}, &caveats));
  } catch (const UserError& error) {
    ++counts["refused"];
    fmt::print("{},{},,,refused,\"{}\"\n", name, published, error.what());
    return;
  }
  const double ratio = static_cast<double>(counted) / static_cast<double>(published);
  const bool is_said = !caveats.not_modelled.empty() || !caveats.also_not_modelled.empty();
  const char* verdict = counted == published             ? "exact"
                        : std::abs(ratio - 1.0) <= kNear ? "near"
                        : is_said                        ? "said"
                                                         : "wrong";
  ++counts[verdict];
  std::vector<std::string> remarks = caveats.not_modelled;
  remarks.insert(remarks.end(), caveats.also_not_modelled.begin(), caveats.also_not_modelled.end());
  fmt::print("{},{},{},{:.4f},{},\"{}\"\n", name, published, counted, ratio, verdict, join(remarks, "; "));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "models: give the list of configurations, experiments/data/hf_configs.jsonl\n");
    return 2;
  }
  try {
    std::ifstream file(argv[1]);
    if (!file) throw UserError(fmt::format("{} cannot be read", argv[1]), "give another file");
    Counts counts;
    int all = 0;
    fmt::print("family,parameters,read,ratio,verdict,remarks\n");
    for (std::string line; std::getline(file, line); ++all) add_row(parse_json(line, argv[1]), counts);
    fmt::print(stderr, "{} families: {} exact, {} within 1 %, {} further off with a remark, {} without, {} refused\n",
               all, counts["exact"], counts["near"], counts["said"], counts["wrong"], counts["refused"]);
    return counts["wrong"] == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception& error) {
    fmt::print(stderr, "models: {}\n", error.what());
    return EXIT_FAILURE;
  }
}
