// GPT and Llama models: checkpointing may change time and memory, and tensor parallelism the order of sums, but neither
// may change the training.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "engine/trainer.h"
#include "small_model.h"

namespace krigtune::model_equality_test {

workload::Workload gpt() {
  workload::Workload workload = small_model(3);
  workload.model.heads = workload.model.kv_heads = 4;
  workload.model.seq_len = 12;  // divisible into parts for 2 and 4 ranks
  return workload;
}

workload::Workload llama() {
  workload::Workload workload = gpt();
  workload.model.kv_heads = 2;
  workload.model.gated_mlp = true;
  workload.model.tied_embeddings = false;
  workload.model.positions = workload::Positions::kRotary;
  workload.model.norm = workload::Norm::kRmsNorm;
  return workload;
}

// As Qwen's models: heads that are wider than hidden / heads, and biases of queries, keys and values alone.
workload::Workload qwen() {
  workload::Workload workload = llama();
  workload.model.head_dim = workload.model.hidden / workload.model.heads + 4;
  workload.model.qkv_bias = true;
  return workload;
}

// As Qwen3: each head's queries and keys have a norm.
workload::Workload qwen3() {
  workload::Workload workload = qwen();
  workload.model.qkv_bias = false;
  workload.model.qk_norm = workload::QkNorm::kHead;
  return workload;
}

// As OLMo 2: all queries share a norm, and all keys.
workload::Workload olmo2() {
  workload::Workload workload = llama();
  workload.model.norm_places = workload::NormPlaces::kPost;
  workload.model.qk_norm = workload::QkNorm::kFull;
  return workload;
}

workload::Workload without_norm_parameters(workload::Workload workload, bool has_gain) {
  workload.model.norm_gain = has_gain;
  workload.model.norm_bias = false;
  return workload;
}

workload::Workload with_adapters(workload::Workload workload, double dropout) {
  workload.training.lora.rank = 3;
  workload.training.lora.dropout = dropout;
  return workload;
}

workload::Workload with_norms(workload::Workload workload, workload::NormPlaces places) {
  workload.model.norm_places = places;
  return workload;
}

workload::Workload with(workload::Workload workload, double dropout, workload::Attention attention) {
  workload.model.dropout = dropout;
  workload.model.attention = attention;
  return workload;
}

std::vector<workload::Workload> models() {
  std::vector<workload::Workload> all;
  for (const workload::Workload& workload : {gpt(), llama()}) {
    for (const workload::Attention attention : {workload::Attention::kFlash, workload::Attention::kEager}) {
      for (const double dropout : {0.0, 0.2}) all.push_back(with(workload, dropout, attention));
    }
  }
  all.push_back(qwen());
  all.push_back(with_norms(llama(), workload::NormPlaces::kSandwich));  // as Gemma 2
  all.push_back(with_norms(llama(), workload::NormPlaces::kPost));      // as OLMo 2
  all.push_back(with(with_norms(gpt(), workload::NormPlaces::kShared), 0.2, workload::Attention::kFlash));
  all.push_back(qwen3());
  all.push_back(without_norm_parameters(llama(), false));
  all.push_back(without_norm_parameters(gpt(), false));
  all.push_back(without_norm_parameters(gpt(), true));
  all.push_back(with_adapters(qwen3(), 0.2));
  all.push_back(with_adapters(gpt(), 0.0));
  return all;
}

std::string label(const workload::Workload& workload, const space::Configuration& configuration) {
  const workload::ModelSpec& model = workload.model;
  return std::string(workload.training.freezes() ? "adapters of " : "") +
         (model.head_dim > 0 ? "qwen"
          : model.gated_mlp  ? "llama"
                             : "gpt") +
         (model.norm_places == workload::NormPlaces::kPre ? "" : " with other norms") +
         (model.qk_norm == workload::QkNorm::kNone ? "" : " with norms of queries and keys") +
         (model.norm_gain ? "" : " without gains") + (model.norm_bias ? "" : " without norms' biases") +
         (model.attention == workload::Attention::kEager ? " eager" : " flash") +
         (model.dropout > 0.0 ? " with dropout" : "") + (model.tied_embeddings ? " tied, " : " untied, ") +
         (workload.precision == workload::Precision::kFp32 ? "" : "16 bit, ") + configuration.text();
}

space::Configuration checkpointing(const char* kind, std::int64_t layers, std::int64_t stage,
                                   std::int64_t tensor_parallel, bool sequence_parallel) {
  return {{"zero_stage", stage},
          {"micro_batch", std::int64_t{2}},
          {"gradient_accumulation_steps", std::int64_t{2}},
          {"reduce_bucket_size", std::int64_t{3000}},
          {"overlap_comm", true},
          {"tensor_parallel", tensor_parallel},
          {"sequence_parallel", sequence_parallel},
          {"activation_checkpointing", std::string(kind)},
          {"activation_checkpointing_layers", layers}};
}

constexpr int kSteps = 3;

/// Returns the parameters of all tensor ranks, concatenated.
std::vector<float> train(const workload::Workload& workload, std::int64_t ranks,
                         const space::Configuration& configuration) {
  const SystemClock clock;
  const plan::StepPlan plan = plan::build_plan(workload, cpu_ranks(ranks), configuration);
  engine::Trainer trainer(plan, std::nullopt, clock);
  for (int step = 0; step < kSteps; ++step) trainer.step();
  std::vector<float> all;
  for (std::int64_t t = 0; t < plan.tensor_ranks; ++t) {
    const std::vector<float> part = trainer.parameters(t);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(Checkpointing, TrainsToTheSameBits) {
  std::vector<workload::Workload> all = models();
  all.push_back(olmo2());
  for (const workload::Precision precision : {workload::Precision::kBf16, workload::Precision::kFp16}) {
    all.push_back(with(llama(), 0.2, workload::Attention::kFlash));
    all.back().precision = precision;
  }
  for (const workload::Workload& workload : all) {
    const std::vector<float> expected = train(workload, 2, checkpointing("none", 1, 2, 1, false));
    const auto trains_alike = [&](const char* kind, std::int64_t layers, std::int64_t stage) {
      const space::Configuration now = checkpointing(kind, layers, stage, 1, false);
      EXPECT_TRUE(same_bits(train(workload, 2, now), expected)) << label(workload, now);
    };
    for (const std::int64_t stage : {2, 3}) {
      trains_alike("selective", 1, stage);
      trains_alike("full", 1, stage);
      trains_alike("full", 2, stage);  // of 3 layers
    }
  }
}

TEST(Checkpointing, TrainsToTheSameBitsOnTensorRanks) {
  for (const bool sequence_parallel : {false, true}) {
    for (const workload::Workload& workload : {with(gpt(), 0.2, workload::Attention::kEager), llama()}) {
      const std::vector<float> expected = train(workload, 4, checkpointing("none", 1, 0, 2, sequence_parallel));
      for (const char* kind : {"selective", "full"}) {
        const space::Configuration now = checkpointing(kind, 2, 1, 2, sequence_parallel);
        EXPECT_TRUE(same_bits(train(workload, 4, now), expected)) << label(workload, now);
      }
    }
  }
}

/// Returns the whole values of each tensor, put together from the tensor ranks. Values that several ranks have must be
/// equal.
std::map<std::string, std::vector<float>> whole_parameters(const plan::StepPlan& plan, const engine::Trainer& trainer) {
  std::map<std::string, std::vector<float>> wholes;
  for (std::int64_t rank = 0; rank < plan.tensor_ranks; ++rank) {
    const std::vector<float> mine = trainer.parameters(rank);
    std::size_t at = 0;
    for (const schedule::ParameterTensor& tensor : plan.tensors) {
      std::vector<float>& whole = wholes[tensor.name];
      std::int64_t unlike = 0;  // replicas
      for (std::int64_t i = 0; i < tensor.elems; ++i, ++at) {
        const std::int64_t element = schedule::whole_element(tensor, rank, plan.tensor_ranks, i);
        if (element < 0) {
          EXPECT_EQ(mine[at], 0.0F) << tensor.name << ": what fills up stays zero";
          continue;
        }
        const auto place = static_cast<std::size_t>(element);
        if (place >= whole.size()) whole.resize(place + 1, std::nanf(""));
        if (rank > 0 && tensor.split == schedule::Split::kNone && whole[place] != mine[at]) ++unlike;
        whole[place] = mine[at];
      }
      EXPECT_EQ(unlike, 0) << tensor.name;
    }
  }
  return wholes;
}

// The gradient of a key's bias is zero up to rounding (softmax ignores it), and AdamW would divide the noise by its own
// size. An epsilon far above the noise keeps the comparison about gradients.
engine::TrainingOptions damped() {
  engine::TrainingOptions options;
  options.epsilon = 1e-5;
  return options;
}

/// The whole parameters after some steps and before them.
struct Trained {
  std::map<std::string, std::vector<float>> start, end;
  double loss = 0.0;
};
Trained train_whole(const workload::Workload& workload, std::int64_t ranks, const space::Configuration& configuration) {
  const SystemClock clock;
  const plan::StepPlan plan = plan::build_plan(workload, cpu_ranks(ranks), configuration);
  engine::Trainer trainer(plan, std::nullopt, clock, damped());
  Trained trained;
  trained.start = whole_parameters(plan, trainer);
  for (int step = 0; step < kSteps; ++step) trained.loss = trainer.step().loss;
  trained.end = whole_parameters(plan, trainer);
  return trained;
}

/// || a - b || / || a - start || of one tensor: relative to the change by training. 0 if nothing has changed.
double difference(const Trained& a, const Trained& b, const std::string& name) {
  double difference = 0.0;
  double change = 0.0;
  const std::vector<float>& end = a.end.at(name);
  for (std::size_t i = 0; i < end.size(); ++i) {
    difference += std::pow(static_cast<double>(end[i]) - static_cast<double>(b.end.at(name)[i]), 2);
    change += std::pow(static_cast<double>(end[i]) - static_cast<double>(a.start.at(name)[i]), 2);
  }
  return difference == 0.0 ? 0.0 : std::sqrt(difference / change);
}

// Sums of floats in another order differ by about 1e-7 of their terms, and AdamW divides by the gradient's own size. A
// forgotten collective, a bias added twice or a part of a gradient would be of the order of 0.05 to 1.
constexpr double kOtherOrder = 1e-3;

void expect_same_training(const workload::Workload& workload, std::int64_t ranks, const space::Configuration& one,
                          std::int64_t other_ranks, const space::Configuration& other) {
  const Trained a = train_whole(workload, ranks, one);
  const Trained b = train_whole(workload, other_ranks, other);
  EXPECT_LE(std::abs(a.loss - b.loss), 1e-5 * a.loss) << label(workload, other);
  for (const auto& [name, values] : a.start) {
    EXPECT_EQ(values, b.start.at(name)) << name;
    EXPECT_LE(difference(a, b, name), kOtherOrder) << name << ", " << label(workload, other);
  }
}

// 67 tokens: neither 2 nor 4 ranks divide the vocabulary.
TEST(TensorParallelism, TrainsAsOneRankDoes) {
  for (const bool sequence_parallel : {false, true}) {
    for (workload::Workload workload : models()) {
      for (const bool tied : {false, true}) {
        workload.model.tied_embeddings = tied;
        expect_same_training(workload, 1, checkpointing("none", 1, 0, 1, false), 2,
                             checkpointing("none", 1, 0, 2, sequence_parallel));
      }
    }
  }
}

TEST(TensorParallelism, GoesTogetherWithDataParallelism) {
  for (const bool sequence_parallel : {false, true}) {
    for (const workload::Workload& workload : {gpt(), llama()}) {
      expect_same_training(workload, 2, checkpointing("none", 1, 2, 1, false), 4,
                           checkpointing("full", 2, 3, 2, sequence_parallel));
    }
    expect_same_training(gpt(), 1, checkpointing("none", 1, 0, 1, false), 4,
                         checkpointing("selective", 1, 1, 4, false));
  }
}

TEST(Models, DependOnTheGlobalBatchAndNotOnHowItIsCut) {
  for (const workload::Workload& workload : {gpt(), llama()}) {
    expect_same_training(workload, 1, configuration(0, 8, 1, 3000, 3000, false), 1,
                         configuration(0, 2, 4, 3000, 3000, false));
    expect_same_training(workload, 1, configuration(0, 8, 1, 3000, 3000, false), 2,
                         configuration(3, 2, 2, 3000, 3000, true));
  }
}

TEST(Adapters, AloneChange) {
  const Trained trained = train_whole(with_adapters(qwen3(), 0.0), 2, checkpointing("none", 1, 3, 1, false));
  int adapters = 0;
  for (const auto& [name, end] : trained.end) {
    const bool is_adapter = name.ends_with(".A") || name.ends_with(".B");
    EXPECT_EQ(end != trained.start.at(name), is_adapter) << name;
    adapters += is_adapter ? 1 : 0;
  }
  EXPECT_EQ(adapters, 3 * 7 * 2);  // q, k, v, o, gate, up, down of three layers
}

// Adapters change the output of the final norm, with which a random head predicts little more than how often a token
// occurs.
TEST(Models, LowerTheirLoss) {
  const SystemClock clock;
  engine::TrainingOptions options;
  options.learning_rate = 1e-2;
  const space::Configuration tensor_parallel = checkpointing("selective", 1, 1, 2, true);
  for (const auto& [workload, share] :
       {std::pair(llama(), 0.7), std::pair(qwen3(), 0.7), std::pair(with_adapters(qwen3(), 0.1), 0.97)}) {
    engine::Trainer trainer(plan::build_plan(workload, cpu_ranks(2), tensor_parallel), std::nullopt, clock, options);
    const double first = trainer.step().loss;
    EXPECT_LE(std::abs(first - std::log(67.0)), 0.1) << "untrained, every token is about equally likely";
    double last = 0.0;
    for (int step = 0; step < 59; ++step) last = trainer.step().loss;
    EXPECT_LE(last, share * first) << label(workload, tensor_parallel);
  }
}

}  // namespace krigtune::model_equality_test
