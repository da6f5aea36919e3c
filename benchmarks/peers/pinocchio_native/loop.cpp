// Times Pinocchio's own algorithms from C++, so that no Python stands between the calls.
//
//   loop MODEL PROBLEM RESULTS [REPETITIONS]
//
// MODEL is what pin.Model.saveToBinary wrote. PROBLEM is plain text: counts (samples, loops), then for
// each loop joint, rotation (row by row), position, twice, then for each sample q, v and x, x being
// accelerations for rnea and forces for the others. RESULTS gets one line an algorithm: name,
// nanoseconds a call in each repetition; then its results, one line a sample.
//
// constraintDynamics runs with Pinocchio's default settings, which are mu = 0 and one iteration: an
// exact solve for loops of full rank. The proximal kind and lcaba iterate to 1e-12 with mu = 1e-6.
//
// Derivatives are timed with the value that they belong to, which is also what is written.

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <vector>

#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/constrained-dynamics.hpp>
#include <pinocchio/algorithm/constrained-dynamics-derivatives.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>
#include <pinocchio/constraints.hpp>
#include <pinocchio/multibody.hpp>
#include <pinocchio/serialization.hpp>
#ifdef WITH_LCABA
#include <pinocchio/algorithm/loop-constrained-aba.hpp>
#endif

namespace pin = pinocchio;
using Vector = Eigen::VectorXd;
using Loop = pin::RigidConstraintModel;
using LoopData = pin::RigidConstraintData;

constexpr double seconds_a_repetition = 0.02;
int repetitions = 9;

struct Sample { Vector q, v, x; };

pin::SE3 read_placement(std::istream & in)
{
  Eigen::Matrix3d R;
  Eigen::Vector3d p;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      in >> R(i, j);
  in >> p[0] >> p[1] >> p[2];
  return pin::SE3(R, p);
}

Vector read_vector(std::istream & in, int size)
{
  Vector x(size);
  for (int i = 0; i < size; ++i)
    in >> x[i];
  return x;
}

template<typename Call>
void measure(const char * name, const std::vector<Sample> & samples, std::ostream & out, Call call)
{
  std::size_t rounds = 1;
  double sum = 0.0; // of results: keeps the calls alive
  auto run = [&](std::size_t count) {
    const std::clock_t start = std::clock(); // processor time: other programs take none of it
    for (std::size_t i = 0; i < count; ++i)
      for (const Sample & sample : samples)
        sum += call(sample)[0];
    return double(std::clock() - start) / CLOCKS_PER_SEC;
  };
  while (run(rounds) < seconds_a_repetition)
    rounds *= 2;
  out << name;
  for (int i = 0; i < repetitions; ++i)
    out << ' ' << 1e9 * run(rounds) / double(rounds * samples.size());
  out << '\n';
  for (const Sample & sample : samples)
    out << call(sample).transpose() << '\n';
  if (sum == 0.123456789)
    std::cerr << "unlikely\n";
}

int main(int argc, char ** argv)
{
  if (argc != 4 && argc != 5)
  {
    std::cerr << "usage: loop MODEL PROBLEM RESULTS [REPETITIONS]\n";
    return 2;
  }
  if (argc == 5)
    repetitions = std::max(1, std::atoi(argv[4]));
  pin::Model model;
  pin::serialization::loadFromBinary(model, argv[1]);
  std::ifstream problem(argv[2]);
  std::size_t sample_count = 0, loop_count = 0;
  problem >> sample_count >> loop_count;
  std::vector<Loop> loops;
  for (std::size_t i = 0; i < loop_count; ++i)
  {
    pin::JointIndex first = 0, second = 0;
    problem >> first;
    const pin::SE3 in_first = read_placement(problem);
    problem >> second;
    const pin::SE3 in_second = read_placement(problem);
    loops.emplace_back(pin::CONTACT_3D, model, first, in_first, second, in_second, pin::LOCAL);
  }
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < sample_count; ++i)
    samples.push_back({read_vector(problem, model.nq), read_vector(problem, model.nv),
                       read_vector(problem, model.nv)});
  if (!problem)
  {
    std::cerr << "the problem file is short\n";
    return 2;
  }
  pin::Data data(model);
  std::ofstream out(argv[3]);
  out << std::setprecision(17);
  if (loops.empty())
  {
    measure("rnea", samples, out, [&](const Sample & s) -> const Vector & {
      return pin::rnea(model, data, s.q, s.v, s.x); });
    measure("aba", samples, out, [&](const Sample & s) -> const Vector & {
      return pin::aba(model, data, s.q, s.v, s.x); });
    measure("computeRNEADerivatives", samples, out, [&](const Sample & s) -> const Vector & {
      pin::computeRNEADerivatives(model, data, s.q, s.v, s.x);
      return data.tau; });
    measure("computeABADerivatives", samples, out, [&](const Sample & s) -> const Vector & {
      pin::computeABADerivatives(model, data, s.q, s.v, s.x);
      return data.ddq; });
    return 0;
  }
  std::vector<LoopData> loop_data;
  for (const Loop & loop : loops)
    loop_data.push_back(loop.createData());
  pin::initConstraintDynamics(model, data, loops, loop_data);
  measure("constraintDynamics", samples, out, [&](const Sample & s) -> const Vector & {
    return pin::constraintDynamics(model, data, s.q, s.v, s.x, loops, loop_data); });
  measure("constraintDynamicsDerivatives", samples, out, [&](const Sample & s) -> const Vector & {
    pin::constraintDynamics(model, data, s.q, s.v, s.x, loops, loop_data);
    pin::computeConstraintDynamicsDerivatives(model, data, loops, loop_data);
    return data.ddq; });
  measure("constraintDynamics_proximal", samples, out, [&](const Sample & s) -> const Vector & {
    pin::ProximalSettings settings(1e-12, 1e-6, 10);
    return pin::constraintDynamics(model, data, s.q, s.v, s.x, loops, loop_data, settings); });
#ifdef WITH_LCABA
  pin::Data other(model);
  std::vector<LoopData> other_data;
  for (const Loop & loop : loops)
    other_data.push_back(loop.createData());
  pin::computeJointMinimalOrdering(model, other, loops);
  measure("lcaba", samples, out, [&](const Sample & s) -> const Vector & {
    pin::ProximalSettings settings(1e-12, 1e-6, 10);
    return pin::lcaba(model, other, s.q, s.v, s.x, loops, other_data, settings); });
#endif
  return 0;
}
