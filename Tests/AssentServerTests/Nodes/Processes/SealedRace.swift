#if PostgreSQL && os(Linux)
import AssentCore
import AssentPayload
import Testing

@testable import AssentServer

/// Unsafe calls whose messages are copied to the other process at once, safe ones beside them, and a process that may
/// be killed meanwhile.
actor SealedRace {
    /// What the client was told of an unsafe call.
    private struct Told {
        var executed = 0
        /// Whether a node was killed while it was made.
        let isKilled: Bool
    }

    private struct Call: Sendable {
        let name: String
        let kind: SealedCalls.Kind
        let message: SealedChannel.Sealed
    }

    /// What has come of one part of a race.
    private enum Part: Sendable {
        case message(Call, SealedCalls.Outcome)
        case safe(Bool)
    }

    /// How many unsafe calls a round has.
    static let size = 20

    private let world: NodeProcesses
    private let nodes: RacedNodes
    private let calls: SealedCalls
    private var told: [String: Told] = [:]
    private var rounds = 0

    init(_ world: NodeProcesses) async throws {
        self.world = world
        nodes = try await RacedNodes(world)
        let first = nodes.first
        calls = try await SealedCalls(world, at: first, gateway: try #require(first.gateway))
    }

    func close() async throws { try await nodes.close() }

    /// Makes the calls of a round. With `killing` one node, by turns, is killed when so many messages were answered.
    func run(killing: Int?) async throws {
        rounds += 1
        let isKilled = killing != nil
        let round = try await messages()
        for call in round { told[call.name] = Told(isKilled: isKilled) }
        let (number, gateways) = (rounds, nodes.all.compactMap(\.gateway))
        // A message and its copy are neighbours, so they go to different nodes.
        let parts = try await nodes.race(3 * round.count, killing: killing) { [calls] index, node -> Part in
            let call = round[index / 3]
            let gateway = node.gateway ?? ""
            guard index % 3 == 2 else {
                return .message(call, await calls.send(call.message, to: gateway, by: node))
            }
            let places = [gateway] + gateways.filter { $0 != gateway }
            let isRead = try? await calls.read("\(number)-\(index)", from: places, by: node)
            return .safe(isRead == true)
        }
        for part in parts {
            switch part {
            case .message(let call, let outcome): note(call, outcome, isKilled: isKilled)
            case .safe(let isAnswered): #expect(isAnswered, "a safe call of round \(number)")
            }
        }
        try await repeatAll(round, isKilled: isKilled)
    }

    private func messages() async throws -> [Call] {
        let nonce = try await calls.nonce(at: nodes.first)
        let kinds = SealedCalls.Kind.allCases
        var made: [Call] = []
        for index in 0..<Self.size {
            let (kind, name) = (kinds[index % kinds.count], "call-\(rounds)-\(index)")
            made.append(Call(name: name, kind: kind, message: try await calls.message(kind, name, nonce: nonce)))
        }
        return made
    }

    private func note(_ call: Call, _ outcome: SealedCalls.Outcome, isKilled: Bool) {
        switch outcome {
        case .executed: told[call.name]?.executed += 1
        case .refused(.repeated): break
        // The killed node's connection to the database may have been the other one's to wait for.
        case .answered(503), .refused(.busy), .unknown: #expect(isKilled, "\(call.name): \(outcome)")
        case .answered, .refused: Issue.record("\(call.name): \(outcome)")
        }
    }

    /// Somebody sends all messages once more to each node. What was never executed may be now, where a node was killed;
    /// after that nothing is.
    private func repeatAll(_ round: [Call], isKilled: Bool) async throws {
        for repetition in 0..<(isKilled ? 2 : 1) {
            let before = told.values.reduce(0) { $0 + $1.executed }
            let again = try await nodes.race(2 * round.count, killing: nil) { [calls] index, node in
                let call = round[index / 2]
                return (call, await calls.send(call.message, to: node.gateway ?? "", by: node))
            }
            for (call, outcome) in again where outcome != .refused(.repeated) {
                note(call, outcome, isKilled: isKilled)
            }
            guard !isKilled || repetition == 1 else { continue }
            #expect(told.values.reduce(0) { $0 + $1.executed } == before, "round \(rounds)")
        }
    }

    /// Holds what clients were told against what has come to the service.
    func compare() -> (calls: Int, executed: Int) {
        let executions = world.executions
        for (name, told) in told {
            let count = executions[name, default: 0]
            #expect(count <= 1, "\(name) was executed \(count) times")
            #expect(told.executed <= count, "\(name) was answered, and not executed")
            #expect(told.isKilled || told.executed == 1, "\(name) was not answered")
        }
        #expect(Set(executions.keys).isSubset(of: told.keys))
        return (told.count, executions.count)
    }
}
#endif
