import AssentPayload
import Crypto
import Foundation
import TestSupport
import Testing

@Suite("Payload encryption: random walks of a client's session")
struct ClientSessionWalkTests {
    /// What the world around a session knows of it.
    private struct World {
        enum Stage { case waiting, sent, ended }

        var random: SmallRandom
        var session: ClientSession
        let secrets: PayloadSecrets
        let keys: [ClientSession.Key]
        var now = ClientSessionTests.start
        var stages: [Int: Stage] = [:]
        var mayRepeat: [Int: Bool] = [:]
        /// The attempt whose result is due.
        var handshake: Int?
        var isPausing = false
        var isReading = false
        var numbers: [Int: UInt64] = [:]
        var agreements = 0
        var begun: [Int: Date] = [:]
        var handshakes: [Int: Date] = [:]

        mutating func take(_ event: ClientSession.Event, answered: ClientSession.Answer? = nil) {
            for action in session.take(event, at: now) { check(action, answered) }
        }

        private mutating func check(_ action: ClientSession.Action, _ answered: ClientSession.Answer?) {
            switch action {
            case .handshake(let attempt, let key):
                #expect(handshake == nil && !isPausing && !isReading, "one at a time")
                #expect(keys.contains { $0.key == key && now < $0.notAfter })
                handshake = attempt
                handshakes[attempt] = now
            case .pause: isPausing = true
            case .readRegistration: isReading = true
            case .wait(let id): #expect(stages[id] == .waiting)
            case .send(let id, let message):
                #expect(stages[id] == .waiting)
                stages[id] = .sent
                #expect(message.number == (numbers[message.session] ?? 0) + 1, "numbers count, and never repeat")
                numbers[message.session] = message.number
                if let begun = begun[message.session] { #expect(now < begun.addingTimeInterval(43_200)) }
            case .handOver(let id):
                #expect(stages[id] == .sent && answered == .sealed)
                stages[id] = .ended
            case .repeatAbove(let id):
                #expect(stages[id] == .sent && mayRepeat[id] == true && answered != .sealed)
                stages[id] = .ended
            case .giveUp(let id, let failure):
                let wasSent = stages[id] == .sent && answered != .notSent
                #expect(stages[id] == .waiting || stages[id] == .sent)
                #expect(failure.mayHaveHadEffect == wasSent)
                #expect(!(wasSent && mayRepeat[id] == true), "it could have been repeated")
                stages[id] = .ended
            }
        }

        mutating func step(_ id: Int) {
            now = now.addingTimeInterval(random.below(200) == 0 ? 50_000 : Double(random.below(60)))
            switch random.below(10) {
            case 0...3:
                stages[id] = .waiting
                mayRepeat[id] = random.below(2) == 0
                take(.begin(.init(id: id, mayRepeat: mayRepeat[id] == true)))
            case 4...6: answer()
            case 7: endHandshake()
            case 8: wake()
            default:
                guard random.below(4) == 0, let id = random.pick(Array(stages.keys).sorted()) else { return }
                if stages[id] != .ended { stages[id] = .ended }
                take(.cancelled(id))
            }
        }

        mutating func answer() {
            let sent = stages.filter { $0.value == .sent }.keys.sorted()
            guard let id = random.pick(sent), let answer = random.pick(ClientSession.Answer.allCases) else { return }
            take(.answer(id, answer), answered: answer)
            #expect(stages[id] == .ended)
        }

        mutating func endHandshake() {
            guard let attempt = handshake else { return take(.handshake(attempt: 1_000_000, .noAnswer)) }
            handshake = nil
            switch random.below(10) {
            case 0...4:
                agreements += 1
                begun[agreements] = handshakes[attempt]
                take(.handshake(attempt: attempt, .agreed(secrets, expires: 43_200)))
            case 5: take(.handshake(attempt: attempt, .notConfirmed))
            case 6: take(.handshake(attempt: attempt, .noAnswer))
            default:
                guard let refusal = random.pick(PayloadRefusal.allCases) else { return }
                take(.handshake(attempt: attempt, .refused(refusal)))
            }
        }

        mutating func wake() {
            if isPausing {
                isPausing = false
                take(.paused)
            } else if isReading {
                isReading = false
                take(.registration(random.pick([.there, .gone, .unreadable]) ?? .gone))
            }
        }

        mutating func drain() {
            for _ in 0..<10_000 where session.pending > 0 {
                answer()
                endHandshake()
                wake()
            }
        }
    }

    @Test(
        "Every call ends once, none is sent with a number twice, and none is repeated that may not be",
        arguments: 0..<20)
    func walk(seed: Int) throws {
        let keys = try [0x11, 0x12].map {
            ClientSession.Key(try PayloadKey(of: PayloadVectors.key($0)), notAfter: .distantFuture)
        }
        var world = World(
            random: SmallRandom(seed: seed), session: ClientSession(role: .device, keys: keys),
            secrets: try PayloadVectors.client(), keys: keys)
        for id in 0..<2_000 { world.step(id) }
        world.drain()
        #expect(world.session.pending == 0)
        #expect(world.stages.values.allSatisfy { $0 == .ended })
    }
}
