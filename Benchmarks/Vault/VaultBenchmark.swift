import AssentVault

/// Sealing and opening a record against the same primitives called directly; and how opening a vault and one write grow
/// with the number of secrets in it, on a real disk.
struct VaultBenchmark: Benchmark {
    static let name = "vault"
    static let summary = "a vault's seal and open against AES-GCM by hand, and its growth from 10 to 1,000 secrets"

    private static let sizes = [10, 100, 1_000]
    private static let recordLength = 2_048

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    private var rounds: Int { setting.rounds(15, quick: 3) }

    @concurrent
    func run() async throws -> [Comparison] {
        try await [seal(), open()] + growth()
    }

    private func seal() throws -> Comparison {
        let world = RecordWorld(length: Self.recordLength)
        return try compare("seal a record of 2 KiB / AES-GCM and SHA-256 by hand, throughput") {
            _ = try world.seal()
        } baseline: {
            _ = try world.sealByHand()
        }
    }

    private func open() throws -> Comparison {
        let world = RecordWorld(length: Self.recordLength)
        let (record, sealed) = (try world.seal(), try world.sealByHand())
        guard try world.open(record) == world.value, try world.openByHand(sealed) == world.value else {
            throw BenchFailure("both do not open what was sealed")
        }
        return try compare("open a record of 2 KiB / AES-GCM and SHA-256 by hand, throughput") {
            _ = try world.open(record)
        } baseline: {
            _ = try world.openByHand(sealed)
        }
    }

    private func compare(
        _ title: String, _ subject: () throws -> Void, baseline: () throws -> Void
    ) throws -> Comparison {
        var comparison = Comparison(benchmark: Self.name, title: title, unit: "1/s", aim: .atLeast(0.9))
        let blocks = setting.rounds(40, quick: 8)
        let block = 250
        let clock = ContinuousClock()
        for round in 0...rounds {
            var times = (Duration.zero, Duration.zero)
            for index in 0..<(2 * blocks) {
                // Subject, baseline, baseline, subject: neither is always the first after the other.
                if index % 4 == 0 || index % 4 == 3 {
                    times.0 += try clock.measure { for _ in 0..<block { try subject() } }
                } else {
                    times.1 += try clock.measure { for _ in 0..<block { try baseline() } }
                }
            }
            // The first round warms both up.
            guard round > 0 else { continue }
            let count = Double(blocks * block)
            comparison.add(subject: count / times.0.inSeconds, baseline: count / times.1.inSeconds, of: rounds)
        }
        return comparison
    }

    private func growth() async throws -> [Comparison] {
        var places: [VaultPlace] = []
        for size in Self.sizes { places.append(try await VaultPlace(setting.workspace, size: size)) }
        var comparisons: [Comparison] = []
        for (title, limit, work) in VaultPlace.works {
            var larger = places.dropFirst().map { place in
                Comparison(
                    benchmark: Self.name, title: "\(title) of \(place.size) / of \(Self.sizes[0]) secrets, time",
                    unit: "s", aim: .atMost(limit))
            }
            for round in 0...rounds {
                var times: [Double] = []
                for place in round.isMultiple(of: 2) ? places : places.reversed() {
                    times.append(try await place.time(work, count: setting.rounds(20, quick: 5)))
                }
                if !round.isMultiple(of: 2) { times.reverse() }
                guard round > 0 else { continue }
                for index in larger.indices {
                    larger[index].add(subject: times[index + 1], baseline: times[0], of: rounds)
                }
            }
            comparisons += larger
        }
        return comparisons
    }
}
