#include "workload/measured_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/block.h"
#include "core/text.h"
#include "workload/workload.h"

namespace krigtune::workload {
namespace {

constexpr EnumWords<CopyKind, 3> kCopyWords = {
    {{"memory", CopyKind::kMemory}, {"to_device", CopyKind::kToDevice}, {"to_host", CopyKind::kToHost}}};
constexpr EnumWords<RankScope, 3> kScopeWords = {
    {{"node", RankScope::kNode}, {"across", RankScope::kAcross}, {"all", RankScope::kAll}}};
constexpr EnumWords<ExchangeKind, 3> kCollectiveWords = {{{"all_reduce", ExchangeKind::kAllReduce},
                                                          {"reduce_scatter", ExchangeKind::kReduceScatter},
                                                          {"all_gather", ExchangeKind::kAllGather}}};

constexpr double kLeastSeconds = 1e-12;  // lower limit for any real work
constexpr double kMostCount = 1e15;

Block<RankTimes> times_block() {
  Block<RankTimes> block("How long ranks took");
  block.key("median_s", &RankTimes::median_s, number(at_least(kLeastSeconds)), "of the rank in the middle").required();
  block.key("slowest_s", &RankTimes::slowest_s, number(at_least(kLeastSeconds)), "of the slowest rank").required();
  block.key("slowest_rank", &RankTimes::slowest_rank, integer(from_to(0, kMostCount)), "who that is").required();
  return block;
}

Block<MeasuredProduct> product_block() {
  const Codec<std::int64_t> size = integer(from_to(1, kMostCount));
  Block<MeasuredProduct> block("A matrix product");
  block.key("precision", &MeasuredProduct::precision, one_of(kPrecisionWords), "of its matrices").required();
  block.key("rows", &MeasuredProduct::rows, size, "of the result").required();
  block.key("cols", &MeasuredProduct::cols, size, "of the result").required();
  block.key("depth", &MeasuredProduct::depth, size, "over which it sums").required();
  block.block("times", &MeasuredProduct::times, times_block()).required();
  return block;
}

Block<MeasuredCopy> copy_block() {
  Block<MeasuredCopy> block("A copy");
  block.key("kind", &MeasuredCopy::kind, one_of(kCopyWords), "from where to where").required();
  block.key("bytes", &MeasuredCopy::bytes, integer(from_to(1, kMostCount)), "that arrive").required();
  block.block("times", &MeasuredCopy::times, times_block()).required();
  return block;
}

Block<MeasuredCollective> collective_block() {
  const Codec<std::int64_t> count = integer(from_to(1, kMostCount));
  Block<MeasuredCollective> block("A collective");
  block.key("kind", &MeasuredCollective::kind, one_of(kCollectiveWords), "what it does").required();
  block.key("scope", &MeasuredCollective::scope, one_of(kScopeWords), "among whom").required();
  block.key("ranks", &MeasuredCollective::ranks, count, "of one group").required();
  block.key("nodes", &MeasuredCollective::nodes, count, "of one group").required();
  block.key("bytes", &MeasuredCollective::bytes, count, "the whole range").required();
  block.key("seconds", &MeasuredCollective::seconds, number(at_least(kLeastSeconds)), "mean over ranks").required();
  // Derived from the other fields; written only for people and other programs.
  const auto derived = [&block](const char* name, double (MeasuredCollective::*of)() const) {
    block.custom(
        name, schema::number(), "follows from the others",
        [name](JsonObject& object, MeasuredCollective&) { object.find(name); },
        [of](const MeasuredCollective& one) { return Json((one.*of)()); });
  };
  derived("alg_bytes_per_s", &MeasuredCollective::alg_bytes_per_s);
  derived("bus_bytes_per_s", &MeasuredCollective::bus_bytes_per_s);
  return block;
}

// A list of objects, each read by the same block.
template <class Item>
void add_list(Block<MeasuredRates>& block, const char* name, std::vector<Item> MeasuredRates::*member,
              const Block<Item>& items) {
  block
      .custom(
          name, schema::list(items.schema()), "",
          [name, member, items](JsonObject& object, MeasuredRates& rates) {
            const Json& list = object.require(name);
            if (!list.is_array()) object.fail(name, "is not a list", "measure again");
            for (std::size_t i = 0; i < list.size(); ++i) {
              const std::string at = object.pointer(name) + "/" + std::to_string(i);
              (rates.*member).push_back(items.value_of(&list[i], object.source(), at));
            }
          },
          [member, items](const MeasuredRates& rates) {
            Json list = Json::array();
            for (const Item& item : rates.*member) list.push_back(items.written(item));
            return list;
          })
      .required();
}

void read_nodes(JsonObject& object, MeasuredRates& rates) {
  const Json& list = object.require("nodes");
  const auto count = static_cast<std::int64_t>(rates.hosts.size());
  if (!list.is_array() || list.empty()) object.fail("nodes", "names no ranks", "measure again");
  for (const Json& node : list) {
    const bool good = node.is_number_integer() && node.get<std::int64_t>() >= 0 && node.get<std::int64_t>() < count;
    if (!good) object.fail("nodes", "names a node that has no host", "measure again");
    rates.nodes.push_back(node.get<std::int64_t>());
  }
}

Block<MeasuredRates> rates_block() {
  Block<MeasuredRates> block("What krigtune-bench --measure-rates found");
  block.key("version", &MeasuredRates::version, text(), "of krigtune");
  block.key("device", &MeasuredRates::device, text(), "cpu or cuda").required();
  block.key("processor", &MeasuredRates::processor, text(), "what rank 0 computes on");
  block.key("memory_bytes", &MeasuredRates::memory_bytes, integer(from_to(0, kMostCount)), "of one rank");
  block.key("taken_bytes", &MeasuredRates::taken_bytes, integer(from_to(0, kMostCount)),
            "of it, by what CUDA and NCCL need for themselves; 0: not known");
  block.key("started_by", &MeasuredRates::started_by, text(), "what started the ranks");
  block.key("emulated_network", &MeasuredRates::emulated_network, text(), "its label, where collectives are held");
  block.key("hosts", &MeasuredRates::hosts, texts(), "by node").required();
  block
      .custom("nodes", schema::list(schema::integer()), "by rank: the node that it is on", read_nodes,
              [](const MeasuredRates& rates) { return Json(rates.nodes); })
      .required();
  add_list(block, "products", &MeasuredRates::products, product_block());
  add_list(block, "copies", &MeasuredRates::copies, copy_block());
  add_list(block, "collectives", &MeasuredRates::collectives, collective_block());
  return block;
}

}  // namespace

RankTimes rank_times(const std::vector<double>& seconds) {
  const auto slowest = std::max_element(seconds.begin(), seconds.end());
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  return {sorted[(sorted.size() - 1) / 2], *slowest, slowest - seconds.begin()};
}

double MeasuredCollective::wire_bytes() const {
  const double passes = kind == ExchangeKind::kAllReduce ? 2.0 : 1.0;
  const auto count = static_cast<double>(ranks);
  return passes * (count - 1.0) / count * static_cast<double>(bytes);
}

std::int64_t MeasuredRates::ranks_per_node() const {
  std::map<std::int64_t, std::int64_t> on_node;
  for (const std::int64_t node : nodes) ++on_node[node];
  std::int64_t fewest = ranks();
  for (const auto& [node, count] : on_node) fewest = std::min(fewest, count);
  return fewest;
}

const char* to_string(CopyKind kind) {
  switch (kind) {
    case CopyKind::kMemory:
      return "within memory";
    case CopyKind::kToDevice:
      return "host to device";
    case CopyKind::kToHost:
      return "device to host";
  }
  return "";
}

const char* to_string(RankScope scope) {
  switch (scope) {
    case RankScope::kNode:
      return "within a node";
    case RankScope::kAcross:
      return "between nodes";
    case RankScope::kAll:
      return "among all ranks";
  }
  return "";
}

Json to_json(const MeasuredRates& rates) { return rates_block().written(rates); }

MeasuredRates read_measured_rates(const Json& json, const std::string& source) {
  JsonObject object(json, source, "");
  MeasuredRates rates;
  rates_block().read(object, rates);
  return rates;
}

// nccl-tests' columns: size, count, type, redop, root, time, algbw, busbw, where count is the number that a rank passes
// to the call. Collectives here run in place and in fp32. Their results are not checked here, but in the engine's
// tests.
namespace {

constexpr double kPerGiga = 1e9;
constexpr double kUsPerS = 1e6;

std::string time_us(double seconds) {
  const double us = kUsPerS * seconds;
  return us >= 10000.0 ? fmt::format("{:.0f}", us)
         : us >= 100.0 ? fmt::format("{:.1f}", us)
                       : fmt::format("{:.2f}", us);
}

const char* title_of(ExchangeKind kind) {
  switch (kind) {
    case ExchangeKind::kAllReduce:
      return "all-reduce";
    case ExchangeKind::kReduceScatter:
      return "reduce-scatter";
    case ExchangeKind::kAllGather:
      return "all-gather";
  }
  return "";
}

std::string collective_row(const MeasuredCollective& one) {
  constexpr std::int64_t kFloatBytes = 4;
  const bool reduces = one.kind != ExchangeKind::kAllGather;
  const std::int64_t shares = one.kind == ExchangeKind::kAllReduce ? 1 : one.ranks;
  return fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6.2f}  {:>6.2f}\n", one.bytes,
                     one.bytes / kFloatBytes / shares, "float", reduces ? "sum" : "none", -1, time_us(one.seconds),
                     one.alg_bytes_per_s() / kPerGiga, one.bus_bytes_per_s() / kPerGiga);
}

std::string collective_table(const MeasuredRates& rates, RankScope scope, ExchangeKind kind) {
  std::string rows;
  double sum = 0.0;
  std::int64_t count = 0;
  std::int64_t ranks = 0;
  for (const MeasuredCollective& one : rates.collectives) {
    if (one.scope != scope || one.kind != kind) continue;
    rows += collective_row(one);
    sum += one.bus_bytes_per_s();
    ranks = one.ranks;
    ++count;
  }
  if (count == 0) return "";
  std::string text = fmt::format("#\n# {} {}, {} ranks{}\n#\n", title_of(kind), to_string(scope), ranks,
                                 rates.emulated_network.empty() ? "" : ", emulated " + rates.emulated_network);
  text += fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}\n", "size", "count", "type", "redop",
                      "root", "time", "algbw", "busbw");
  text += fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}\n", "(B)", "(elements)", "", "", "",
                      "(us)", "(GB/s)", "(GB/s)");
  return text + rows + fmt::format("# Avg bus bandwidth    : {:g}\n", sum / static_cast<double>(count) / kPerGiga);
}

std::string header(const MeasuredRates& rates) {
  std::string text =
      fmt::format("# {} on {}, {}, on {}\n", counted(rates.ranks(), "rank"), counted(std::ssize(rates.hosts), "node"),
                  rates.started_by, rates.device == "cuda" ? "GPUs" : "CPUs");
  for (std::int64_t rank = 0; rank < rates.ranks(); ++rank) {
    const std::int64_t node = rates.nodes[static_cast<std::size_t>(rank)];
    text += fmt::format("#  Rank {:>3} on {:>10}, node {}{}\n", rank, rates.hosts[static_cast<std::size_t>(node)], node,
                        rank == 0 ? ": " + rates.processor : "");
  }
  return text;
}

std::string product_table(const MeasuredRates& rates) {
  std::string text = "#\n# matrix products, a rank each at the same time\n#\n";
  text += fmt::format("# {:>10}  {:>8}  {:>8}  {:>8}  {:>7}  {:>9}  {:>9}\n", "type", "rows", "cols", "depth", "time",
                      "median", "slowest");
  text += fmt::format("# {:>10}  {:>8}  {:>8}  {:>8}  {:>7}  {:>9}  {:>9}\n", "", "", "", "", "(us)", "(GFLOP/s)",
                      "(GFLOP/s)");
  for (const MeasuredProduct& one : rates.products) {
    text += fmt::format("{:>12}  {:>8}  {:>8}  {:>8}  {:>7}  {:>9.1f}  {:>9.1f}\n", to_string(one.precision), one.rows,
                        one.cols, one.depth, time_us(one.times.median_s), one.flops() / one.times.median_s / kPerGiga,
                        one.flops() / one.times.slowest_s / kPerGiga);
  }
  return text;
}

std::string copy_table(const MeasuredRates& rates) {
  std::string text = "#\n# copies, a rank each at the same time; GB/s that arrive\n#\n";
  text += fmt::format("# {:>10}  {:>14}  {:>7}  {:>9}  {:>9}\n", "size", "copy", "time", "median", "slowest");
  text += fmt::format("# {:>10}  {:>14}  {:>7}  {:>9}  {:>9}\n", "(B)", "", "(us)", "(GB/s)", "(GB/s)");
  for (const MeasuredCopy& one : rates.copies) {
    const auto bytes = static_cast<double>(one.bytes);
    std::string kind = to_string(one.kind);
    std::replace(kind.begin(), kind.end(), ' ', '-');  // columns are separated by blanks
    text += fmt::format("{:>12}  {:>14}  {:>7}  {:>9.2f}  {:>9.2f}\n", one.bytes, kind, time_us(one.times.median_s),
                        bytes / one.times.median_s / kPerGiga, bytes / one.times.slowest_s / kPerGiga);
  }
  return text;
}

}  // namespace

std::string rates_text(const MeasuredRates& rates) {
  std::string text = header(rates) + product_table(rates) + copy_table(rates);
  for (const RankScope scope : {RankScope::kNode, RankScope::kAcross, RankScope::kAll}) {
    for (const ExchangeKind kind : {ExchangeKind::kAllReduce, ExchangeKind::kAllGather, ExchangeKind::kReduceScatter}) {
      text += collective_table(rates, scope, kind);
    }
  }
  return text;
}

}  // namespace krigtune::workload
