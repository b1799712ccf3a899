#include "report/fleet_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/text.h"
#include "report/labels.h"
#include "report/whole_run_text.h"

namespace krigtune::report {
namespace {

using fleet::BestOfCluster;
using fleet::ClusterPlan;
using fleet::Estimate;
using fleet::Fleet;

constexpr double kNear = 1.1;  // prices and times that are nearer cannot be told apart (docs/planning.md)
constexpr double kPercent = 100.0;

struct TimeUnit {
  const char* name;
  double in_days;
};

TimeUnit unit_of(double days) {
  constexpr TimeUnit kMinutes{"min", 1.0 / 24.0 / 60.0};
  constexpr TimeUnit kHours{"h", 1.0 / 24.0};
  constexpr TimeUnit kDays{"d", 1.0};
  if (days >= 2.0) return kDays;
  return days >= 2.0 / 24.0 ? kHours : kMinutes;
}

// At least two digits, without an exponent: "8.6", "14", "1234".
std::string short_number(double value) {
  return std::abs(value) < 9.95 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

// Three digits, with commas between thousands: "29,400".
std::string grouped(double value) {
  const double scale = std::pow(10.0, std::max(0.0, std::floor(std::log10(value)) - 2.0));
  const std::string digits = fmt::format("{:.0f}", std::round(value / scale) * scale);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string money_text(double price) { return price < 100.0 ? fmt::format("{:.2f}", price) : grouped(price); }

std::string price_range_text(const Estimate& price) {
  return fmt::format("{} to {}", money_text(price.low), money_text(price.high));
}

std::string days_and_price(const Fleet& fleet, const BestOfCluster& best) {
  std::string text = fmt::format("{} ({})", days_text(best.days.value), days_range_text(best.days));
  if (!best.price) return text;
  return fmt::format("{} ({}) in {}", price_text(best.price->value, fleet.currency), price_range_text(*best.price),
                     text);
}

}  // namespace

std::string days_text(double days) {
  const TimeUnit unit = unit_of(days);
  return fmt::format("{} {}", short_number(days / unit.in_days), unit.name);
}

std::string days_range_text(const Estimate& days) {
  const TimeUnit unit = unit_of(days.value);
  return fmt::format("{} to {}", short_number(days.low / unit.in_days), short_number(days.high / unit.in_days));
}

std::string price_text(double price, const std::string& currency) {
  return currency.empty() ? money_text(price) : fmt::format("{} {}", money_text(price), currency);
}

std::string size_text(const workload::ClusterSpec& cluster) {
  return cluster.nodes == 1 ? fmt::format("{}", cluster.gpus_per_node)
                            : fmt::format("{} x {}", cluster.nodes, cluster.gpus_per_node);
}

std::string row_text(const Fleet& fleet, std::size_t row) {
  const ClusterPlan& plan = fleet.plans[row];
  return fmt::format("row {} ({}, {})", row + 1, plan.name, size_text(plan.cluster));
}

std::vector<std::size_t> cheapest_first(const Fleet& fleet) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < fleet.plans.size(); ++i) {
    if (fleet.plans[i].best) rows.push_back(i);
  }
  std::ranges::stable_sort(rows, {}, [&](std::size_t i) {
    const BestOfCluster& best = *fleet.plans[i].best;
    return best.price ? std::pair(best.price->value, best.days.value)
                      : std::pair(std::numeric_limits<double>::infinity(), best.days.value);
  });
  return rows;
}

FleetCells fleet_cells(const BestOfCluster& best) {
  FleetCells cells;
  cells.tokens_per_s = grouped(best.tokens_per_s.value);
  cells.tokens_per_s_range = fmt::format("{} to {}", grouped(best.tokens_per_s.low), grouped(best.tokens_per_s.high));
  if (best.mfu) {
    cells.mfu = fmt::format("{:.0f} %", kPercent * best.mfu->value);
    cells.mfu_range = fmt::format("{:.0f} to {:.0f}", kPercent * best.mfu->low, kPercent * best.mfu->high);
  }
  if (best.memory_bytes) {
    const auto gib = [](double bytes) { return to_gib(Bytes{static_cast<std::int64_t>(bytes)}); };
    const plan::MemoryVerdict& memory = *best.candidate.forecast.memory;
    cells.memory = fmt::format("{:.0f} GiB", gib(best.memory_bytes->value));
    cells.memory_range = fmt::format("{:.0f} to {:.0f}", gib(best.memory_bytes->low), gib(best.memory_bytes->high));
    cells.fits =
        memory.verdict == plan::Verdict::kFits ? "yes" : fmt::format("{:.0f} %", kPercent * memory.probability_fits);
  }
  cells.efficiency = fmt::format("{:.0f} %", kPercent * best.efficiency);
  if (best.network_gain) cells.network = gain_text(*best.network_gain);
  cells.days = days_text(best.days.value);
  cells.days_range = days_range_text(best.days);
  cells.parts = whole_run_parts(best.whole);
  cells.energy = energy_text(best.whole);
  if (best.price) {
    cells.price = money_text(best.price->value);
    cells.price_range = price_range_text(*best.price);
  }
  return cells;
}

Table fleet_speed_table(const Fleet& fleet) {
  Table table{"speed",
              {{"row", "", true},
               {"cluster", "cluster"},
               {"size", "GPUs", true},
               {"tokens_per_s", "tokens/s", true},
               {"mfu", "MFU", true},
               {"memory", "memory", true},
               {"fits", "fits", true},
               {"efficiency", "per GPU", true},
               {"network", "links x2", true}},
              {},
              {}};
  for (std::size_t i = 0; i < fleet.plans.size(); ++i) {
    const ClusterPlan& plan = fleet.plans[i];
    if (!plan.best) continue;
    const FleetCells cells = fleet_cells(*plan.best);
    std::vector<Cell>& row = table.rows.emplace_back();
    for (const std::string& text : {fmt::format("{}", i + 1), plan.name, size_text(plan.cluster), cells.tokens_per_s,
                                    cells.mfu, cells.memory, cells.fits, cells.efficiency, cells.network}) {
      row.push_back(text_cell(text));
    }
  }
  return table;
}

Table fleet_price_table(const Fleet& fleet) {
  const std::string in = fleet.currency.empty() ? "" : " (" + fleet.currency + ")";
  Table table{"price",
              {{"row", "", true},
               {"cluster", "cluster"},
               {"size", "GPUs", true},
               {"days", "time", true},
               {"days_range", "80 % interval", true},
               {"price", "price" + in, true},
               {"price_range", "80 % interval", true},
               {"energy", "energy", true}},
              {},
              {}};
  for (const std::size_t i : cheapest_first(fleet)) {
    const ClusterPlan& plan = fleet.plans[i];
    const FleetCells cells = fleet_cells(*plan.best);
    std::vector<Cell>& row = table.rows.emplace_back();
    for (const std::string& text : {fmt::format("{}", i + 1), plan.name, size_text(plan.cluster), cells.days,
                                    cells.days_range, cells.price, cells.price_range, cells.energy}) {
      row.push_back(text_cell(text));
    }
  }
  const auto has_energy = [](const ClusterPlan& plan) { return plan.best && plan.best->whole.energy_kwh; };
  if (std::ranges::none_of(fleet.plans, has_energy)) erase_column(table, "energy");
  if (fleet.has_prices()) return table;
  erase_column(table, "price");
  erase_column(table, "price_range");
  return table;
}

namespace {

std::vector<std::string> parameters_of(const Fleet& fleet) {
  std::vector<std::string> names = fleet.session.space.columns();
  for (const ClusterPlan& plan : fleet.plans) {  // a parameter that follows from others may be missing in the first
    if (!plan.best) continue;
    for (const auto& [name, value] : plan.best->candidate.configuration) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

Cell number(std::optional<double> value) { return number_cell(value, ""); }
Cell integer(std::int64_t value) { return {"", space::Value(value)}; }

void add_estimate(const std::optional<Estimate>& estimate, std::vector<Cell>& row) {
  row.push_back(number(estimate ? std::optional(estimate->value) : std::nullopt));
  row.push_back(number(estimate ? std::optional(estimate->low) : std::nullopt));
  row.push_back(number(estimate ? std::optional(estimate->high) : std::nullopt));
}

void add_whole_run(const fleet::WholeRun& whole, std::vector<Cell>& row) {
  for (const double part : {whole.steps_s, whole.evaluation_s, whole.checkpoints_s, whole.failures_s, whole.failures})
    row.push_back(number(part));
  row.push_back(number(whole.energy_kwh));
}

// The numbers of a plan with a best configuration, in the order of kBestColumns.
void add_best(const BestOfCluster& best, std::vector<Cell>& row) {
  const forecast::Forecast& forecast = best.candidate.forecast;
  row.push_back(integer(best.sequences));
  row.push_back(number(forecast.cost->step_time_s));
  row.push_back(number(forecast.samples_per_s));
  for (const std::optional<Estimate>& one : {std::optional(best.tokens_per_s), best.mfu, best.memory_bytes})
    add_estimate(one, row);
  row.push_back(text_cell(forecast.memory ? plan::to_string(forecast.memory->verdict) : ""));
  row.push_back(number(forecast.memory ? std::optional(forecast.memory->probability_fits) : std::nullopt));
  row.push_back(text_cell(cost::to_string(forecast.cost->bottleneck())));
  row.push_back(number(best.efficiency));
  add_estimate(best.days, row);
  row.push_back(number(best.gpu_hours));
  add_whole_run(best.whole, row);
  add_estimate(best.price, row);
  row.push_back(number(best.network_gain));
  row.push_back(text_cell(best.near.empty() ? "" : opinion::name_of(best.near.front().run)));
  row.push_back(number(best.near.empty() ? std::nullopt : std::optional(best.near.front().reached())));
}

constexpr std::array kBestColumns = {"sequences",
                                     "step_time_s",
                                     "samples_per_s",
                                     "tokens_per_s",
                                     "tokens_per_s_low",
                                     "tokens_per_s_high",
                                     "mfu",
                                     "mfu_low",
                                     "mfu_high",
                                     "memory_bytes",
                                     "memory_bytes_low",
                                     "memory_bytes_high",
                                     "memory_verdict",
                                     "probability_fits",
                                     "bottleneck",
                                     "efficiency",
                                     "days",
                                     "days_low",
                                     "days_high",
                                     "gpu_hours",
                                     "steps_s",
                                     "evaluation_s",
                                     "checkpoints_s",
                                     "failures_s",
                                     "failures",
                                     "energy_kwh",
                                     "price",
                                     "price_low",
                                     "price_high",
                                     "network_gain",
                                     "published_run",
                                     "published_reached"};

}  // namespace

Table fleet_csv_table(const Fleet& fleet) {
  Table table{"clusters", {}, {}, {}};
  for (const char* name :
       {"row", "cluster", "gpu", "nodes", "gpus_per_node", "gpus", "price_per_gpu_hour", "configurations", "why_not"})
    table.columns.push_back({name, ""});
  const std::vector<std::string> parameters = parameters_of(fleet);
  for (const std::string& name : parameters) table.columns.push_back({name, ""});
  for (const char* name : kBestColumns) table.columns.push_back({name, ""});
  for (std::size_t i = 0; i < fleet.plans.size(); ++i) {
    const ClusterPlan& plan = fleet.plans[i];
    std::vector<Cell>& row = table.rows.emplace_back();
    row = {integer(static_cast<std::int64_t>(i) + 1),
           text_cell(plan.name),
           text_cell(plan.cluster.gpu),
           integer(plan.cluster.nodes),
           integer(plan.cluster.gpus_per_node),
           integer(plan.cluster.ranks()),
           number(plan.price_per_gpu_hour),
           integer(plan.configurations),
           text_cell(plan.why_not)};
    for (const std::string& name : parameters) {
      const space::Value* value = plan.best ? plan.best->candidate.configuration.find(name) : nullptr;
      row.push_back({"", value == nullptr ? std::nullopt : std::optional(*value)});
    }
    if (plan.best) add_best(*plan.best, row);
    row.resize(table.columns.size());
  }
  return table;
}

std::vector<std::string> fleet_impossible(const Fleet& fleet) {
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < fleet.plans.size(); ++i) {
    if (!fleet.plans[i].best) sentences.push_back(fmt::format("{}: {}", row_text(fleet, i), fleet.plans[i].why_not));
  }
  return sentences;
}

namespace {

std::string answer_text(const Fleet& fleet, std::size_t row) {
  const BestOfCluster& best = *fleet.plans[row].best;
  const std::string parts = best.whole.wall_s > best.whole.steps_s ? ": " + whole_run_parts(best.whole) : "";
  return fmt::format("{}: {}{}", row_text(fleet, row), days_and_price(fleet, best), parts);
}

// Rows that cost hardly more than the cheapest.
std::string as_cheap(const Fleet& fleet, std::size_t cheapest) {
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < fleet.plans.size(); ++i) {
    const ClusterPlan& plan = fleet.plans[i];
    if (i == cheapest || !plan.best || !plan.best->price) continue;
    if (plan.best->price->value < kNear * fleet.plans[cheapest].best->price->value)
      rows.push_back(fmt::format("{}", i + 1));
  }
  if (rows.empty()) return "";
  return fmt::format("; {} {} less than 10 % more, which predictions cannot tell apart",
                     rows.size() == 1 ? "row " + rows.front() : "rows " + join(rows, ", "),
                     rows.size() == 1 ? "costs" : "cost");
}

std::string in_time_text(const Fleet& fleet, const fleet::Choice& choice, double deadline_days) {
  if (!choice.in_time) {
    return choice.nearest ? missed_deadline_text(fleet, choice, deadline_days)
                          : "only clusters without a price: row " + fmt::format("{}", *choice.fastest + 1);
  }
  const bool is_sure = fleet.plans[*choice.in_time].best->days.high <= deadline_days;
  std::string text = answer_text(fleet, *choice.in_time);
  if (is_sure) return text;
  return text + (choice.surely_in_time
                     ? "; at the upper end of its time the cheapest is " + answer_text(fleet, *choice.surely_in_time)
                     : "; at the upper end of their times none meets it");
}

// What faster links would be worth on one row.
std::string network_text(const Fleet& fleet, std::size_t row) {
  const ClusterPlan& plan = fleet.plans[row];
  const double gain = plan.best->network_gain.value_or(1.0);
  if (gain < 1.005) return "";
  const bool is_between = plan.cluster.ranks() > plan.cluster.domain();
  const workload::NetworkLevel& level = is_between ? plan.cluster.network->inter : plan.cluster.network->intra;
  std::string text = fmt::format("{}: {} if its links {} ({}) are twice as fast", row_text(fleet, row), gain_text(gain),
                                 is_between ? "between nodes" : "within a node", level.name);
  if (!plan.price_per_gpu_hour) return text;
  return text +
         fmt::format(", worth {} more a GPU-hour", price_text((gain - 1.0) * *plan.price_per_gpu_hour, fleet.currency));
}

std::optional<std::size_t> largest_network_gain(const Fleet& fleet) {
  std::optional<std::size_t> largest;
  const auto gain_of = [&](std::size_t row) { return fleet.plans[row].best->network_gain.value_or(1.0); };
  for (std::size_t i = 0; i < fleet.plans.size(); ++i) {
    if (fleet.plans[i].best && (!largest || gain_of(i) > gain_of(*largest))) largest = i;
  }
  return largest;
}

}  // namespace

std::string missed_deadline_text(const Fleet& fleet, const fleet::Choice& choice, double deadline_days) {
  return fmt::format("no cluster is done in {}; the nearest is {} with {}", days_text(deadline_days),
                     row_text(fleet, *choice.nearest), days_text(fleet.plans[*choice.nearest].best->days.value));
}

std::vector<std::pair<std::string, std::string>> fleet_answers(const Fleet& fleet, const fleet::Choice& choice,
                                                               std::optional<double> deadline_days) {
  std::vector<std::pair<std::string, std::string>> answers;
  if (choice.cheapest) {
    answers.emplace_back("cheapest", answer_text(fleet, *choice.cheapest) + as_cheap(fleet, *choice.cheapest));
  }
  if (choice.fastest) answers.emplace_back("fastest", answer_text(fleet, *choice.fastest));
  if (deadline_days && choice.fastest) {
    answers.emplace_back(
        fmt::format("{} in {}", choice.cheapest ? "cheapest" : "fewest GPU-hours", days_text(*deadline_days)),
        in_time_text(fleet, choice, *deadline_days));
  }
  if (choice.front.size() > 1) {
    std::vector<std::string> rows;
    for (const std::size_t row : choice.front) rows.push_back(fmt::format("{}", row + 1));
    answers.emplace_back("no other is both faster and cheaper than", "rows " + join(rows, ", "));
  }
  std::set<std::size_t> rows;
  for (const auto& row : {choice.cheapest, choice.fastest, largest_network_gain(fleet)}) {
    if (row && rows.insert(*row).second) {
      if (const std::string text = network_text(fleet, *row); !text.empty())
        answers.emplace_back("a faster network", text);
    }
  }
  return answers;
}

std::vector<std::string> fleet_opinions(const Fleet& fleet, const fleet::Choice& choice) {
  std::set<std::size_t> rows(choice.front.begin(), choice.front.end());
  for (const auto& row : {choice.cheapest, choice.fastest, choice.in_time, choice.surely_in_time})
    if (row) rows.insert(*row);
  std::vector<std::pair<std::size_t, std::vector<std::string>>> opinions;  // the first row, and the numbers of all
  for (const std::size_t row : rows) {
    const std::vector<opinion::NearRun>& near = fleet.plans[row].best->near;
    if (near.empty()) continue;
    const auto known = std::ranges::find_if(opinions, [&](const auto& one) {
      return fleet.plans[one.first].best->near.front().run.id == near.front().run.id;
    });
    auto& of = known == opinions.end() ? opinions.emplace_back(row, std::vector<std::string>()) : *known;
    of.second.push_back(fmt::format("{}", row + 1));
  }
  std::vector<std::string> sentences;
  for (const auto& [row, of] : opinions) {
    const std::vector<opinion::NearRun>& near = fleet.plans[row].best->near;
    std::vector<std::string> parts = {opinion::sentence_of(near.front())};
    if (of.size() == 1) parts.push_back(opinion::difference_sentence(near.front()));
    if (near.size() > 1 && of.size() == 1) parts.push_back(opinion::range_sentence(near));
    sentences.push_back(fmt::format("{} {}: {}", of.size() == 1 ? "row" : "rows", join(of, ", "), join(parts, "; ")));
  }
  return sentences;
}

namespace {

std::string batch_text(const Fleet& fleet) {
  const workload::Workload& workload = *fleet.session.workload;
  if (workload.train_batch_size) {
    return fmt::format(
        "every row keeps the batch of {}: only configurations whose micro-batches and replicas divide it count",
        counted(*workload.train_batch_size, "sequence"));
  }
  std::set<std::int64_t> batches;
  for (const ClusterPlan& plan : fleet.plans) {
    if (plan.best) batches.insert(plan.best->sequences);
  }
  if (batches.size() < 2) return "";
  return fmt::format(
      "the session states no \"train_batch_size\", so the rows have steps of {} to {} sequences, which do not teach "
      "a model equally much",
      *batches.begin(), *batches.rbegin());
}

std::string time_sentence(const Fleet& fleet) {
  const session::RunSpec& run = fleet.session.run;
  std::vector<std::string> parts;
  if (run.evaluation_share > 0.0) parts.push_back(fmt::format("evaluation ({:g} of the steps)", run.evaluation_share));
  if (run.data_wait_share > 0.0) parts.push_back(fmt::format("waiting for data ({:g})", run.data_wait_share));
  if (run.checkpoint_s) parts.push_back(fmt::format("checkpoints of {}", duration_text(*run.checkpoint_s)));
  if (run.failures_per_gpu_day > 0.0) {
    parts.push_back(fmt::format("{} failures a GPU and day with restarts of {} and the work that is lost",
                                number_text(run.failures_per_gpu_day), duration_text(run.restart_s)));
  }
  if (parts.empty()) {
    return "time and price are those of training steps: evaluation, checkpoints and failures come on top, unless "
           "\"run\" in the session states them, and waiting for machines";
  }
  return "time and price are those of steps, " + join(parts, ", ") +
         ", as the session states; waiting for machines "
         "comes on top";
}

// The rows whose stated interval between checkpoints is far off.
std::vector<std::string> checkpoint_sentences(const Fleet& fleet) {
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < fleet.plans.size(); ++i) {
    const auto& best = fleet.plans[i].best;
    if (best && best->whole.interval_is_far_off())
      sentences.push_back(fmt::format("row {}: {}", i + 1, checkpoint_sentence(best->whole)));
  }
  constexpr std::size_t kMostSentences = 3;
  if (sentences.size() > kMostSentences) {
    sentences.resize(kMostSentences);
    sentences.emplace_back("other rows have better intervals too: leave \"checkpoint_every_s\" out to have them");
  }
  return sentences;
}

// A warning of rows whose utilization exceeds that of any published run; "" if there are none.
std::string too_good_text(const Fleet& fleet) {
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < fleet.plans.size(); ++i) {
    const auto& best = fleet.plans[i].best;
    if (best && best->candidate.forecast.utilization && best->candidate.forecast.utilization->too_good)
      rows.push_back(fmt::format("{}", i + 1));
  }
  if (rows.empty()) return "";
  return fmt::format(
      "{} {} too good to be true: published runs of dense transformers stay below 60 % of the peak of their products",
      rows.size() == 1 ? "row " + rows.front() : "rows " + join(rows, ", "), rows.size() == 1 ? "is" : "are");
}

}  // namespace

std::vector<std::string> fleet_assumptions(const Fleet& fleet) {
  std::vector<std::string> sentences;
  if (std::string batch = batch_text(fleet); !batch.empty()) sentences.push_back(std::move(batch));
  sentences.push_back(fmt::format(
      "intervals: {} took {:.2f} to {:.2f} times as long as predicted. What one row gets wrong others mostly get "
      "wrong too, so rankings are surer than times; --csv, --json and --html have the intervals of the other columns",
      fleet.range.subject, fleet.range.low, fleet.range.high));
  if (std::string rows = too_good_text(fleet); !rows.empty()) sentences.push_back(std::move(rows));
  sentences.push_back(time_sentence(fleet));
  for (std::string& text : checkpoint_sentences(fleet)) sentences.push_back(std::move(text));
  if (fleet.has_prices()) sentences.emplace_back("prices are GPUs times hours times the price in the file");
  std::vector<std::string> without;
  for (const ClusterPlan& plan : fleet.plans) {
    if (!plan.price_per_gpu_hour && (without.empty() || without.back() != plan.name)) without.push_back(plan.name);
  }
  if (!without.empty()) {
    sentences.push_back(fmt::format("no price, because the file has no \"price_per_gpu_hour\" of {}",
                                    fleet.has_prices() ? join(without, ", ") : "any cluster"));
  }
  sentences.emplace_back(
      "per GPU: tokens a second and GPU, relative to the first row of the same cluster; links x2: the same "
      "configuration "
      "with its slowest links twice as fast");
  return sentences;
}

}  // namespace krigtune::report
