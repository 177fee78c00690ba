import AssentCore
import Foundation
import Testing

@testable import AssentEngine

@Suite("Password checks starve nobody")
struct PasswordWorkersTests {
    private static let wide = PasswordAdmission(total: 100, perAddress: 100)

    private static func caller(_ address: String?, _ user: String) -> PasswordCaller {
        PasswordCaller(address: address, user: user)
    }

    @Test("Addresses take turns, and within an address its users do")
    func turns() {
        var queue = PasswordQueue<String>()
        for (address, user, work) in [
            ("a", "x", "ax1"), ("a", "x", "ax2"), ("a", "x", "ax3"), ("a", "y", "ay1"), ("b", "x", "bx1"),
            ("b", "x", "bx2"), (nil, "", "server"),
        ] { queue.append(work, for: Self.caller(address, user)) }
        #expect(queue.count == 7)
        var order: [String] = []
        while let work = queue.next() { order.append(work) }
        #expect(order == ["ax1", "bx1", "server", "ay1", "bx2", "ax2", "ax3"])
        #expect(queue.count == 0)
        // Somebody new is next but one, whatever waits of the first.
        for number in 0..<50 { queue.append("a\(number)", for: Self.caller("a", "x")) }
        queue.append("new", for: Self.caller("c", "z"))
        let next = [queue.next(), queue.next()]
        #expect(next == ["a0", "new"])
    }

    @Test("Too many of one address, of one of its users or of all are refused; who leaves makes way")
    func bounds() {
        var admission = PasswordAdmission(total: 8, perAddress: 4)
        let entering: [(String?, String, Bool)] = [
            ("a", "x", true), ("a", "x", true), ("a", "x", true), ("a", "x", false), ("b", "x", true),
            ("a", "y", true), ("a", "z", false), ("b", "z", true), (nil, "z", true), ("c", "w", true),
            ("d", "w", false),
        ]
        for (address, user, isAdmitted) in entering {
            let entered = admission.enter(Self.caller(address, user))
            #expect(entered == isAdmitted, "\(address ?? "-") \(user)")
        }
        #expect(admission.total == 8)
        admission.leave(Self.caller("a", "x"))
        let entered = admission.enter(Self.caller("b", "x"))
        #expect(entered)
        #expect(admission.total == 8)
        admission.close()
        admission.leave(Self.caller("a", "x"))
        let late = admission.enter(Self.caller("e", "x"))
        #expect(!late)
    }

    @Test("An address alone has a quarter of the places, and one user two thirds of that")
    func shares() {
        var admission = PasswordAdmission(total: 129)
        var entered = 0
        while admission.enter(Self.caller("a", "x")) { entered += 1 }
        #expect(entered == 22)
        while admission.enter(Self.caller("a", "\(entered)")) { entered += 1 }
        #expect(entered == 33)
    }

    @Test(
        "While some addresses guess all they can, one that was never seen is let in, and served after one check of each",
        arguments: [1, 3, 10])
    func newcomers(guessers: Int) {
        var admission = PasswordAdmission(total: 129)
        var queue = PasswordQueue<PasswordCaller>()
        var guesses = 0
        func guess() {
            for guesser in 0..<guessers {
                while true {
                    let caller = Self.caller("guesser \(guesser)", "user \(guesses)")
                    guard admission.enter(caller) else { break }
                    guesses += 1
                    queue.append(caller, for: caller)
                }
            }
        }
        for round in 0..<100 {
            guess()
            let ana = Self.caller("phone \(round)", "ana")
            let entered = admission.enter(ana)
            #expect(entered, "round \(round)")
            queue.append(ana, for: ana)
            var turns = 0
            while let served = queue.next() {
                turns += 1
                admission.leave(served)
                if served == ana { break }
                guess()
            }
            #expect(turns <= guessers + 1, "round \(round)")
        }
    }

    @Test("When the server stops, what waits is refused at once, and what a thread works on is finished")
    func drained() async throws {
        let workers = PasswordWorkers(threads: 1, admission: Self.wide)
        let gate = ThreadGate()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await Self.check(workers, Self.caller("a", "x")) { gate.wait() } }
            await gate.waitUntilReached()
            for number in 0..<30 {
                group.addTask {
                    await #expect(throws: EngineError(.busy)) {
                        try await Self.check(workers, Self.caller("a", "\(number)")) { Issue.record("it was run") }
                    }
                }
            }
            while workers.load.waiting < 30 { await Task.yield() }
            workers.drain()
            // All but the one at the gate.
            for _ in 0..<30 { try await group.next() }
            await #expect(throws: EngineError(.busy)) { try await Self.check(workers, Self.caller("b", "y")) {} }
            gate.open()
            try await group.next()
        }
        #expect(workers.load == PasswordLoad(inProgress: 0, waiting: 0, limit: 100))
    }

    @Test("One client that floods the only thread makes another one wait for one check, not for all")
    func fairness() async throws {
        let workers = PasswordWorkers(threads: 1, admission: Self.wide)
        let gate = ThreadGate()
        let order = Locked<[String]>([])
        try await withThrowingTaskGroup(of: Void.self) { group in
            // The first one holds the thread until all others wait.
            group.addTask { try await Self.check(workers, Self.caller("guesser", "u0")) { gate.wait() } }
            await gate.waitUntilReached()
            for number in 1...20 {
                group.addTask {
                    try await Self.check(workers, Self.caller("guesser", "u\(number % 3)")) {
                        order.withLock { $0.append("guess") }
                    }
                }
            }
            while workers.load.waiting < 20 { await Task.yield() }
            group.addTask {
                try await Self.check(workers, Self.caller("ana's phone", "ana")) {
                    order.withLock { $0.append("ana") }
                }
            }
            while workers.load.waiting < 21 { await Task.yield() }
            gate.open()
            try await group.waitForAll()
        }
        #expect(order.withLock { $0.firstIndex(of: "ana") } == 1)
        #expect(workers.load == PasswordLoad(inProgress: 0, waiting: 0, limit: 100))
    }

    @Test("While all threads are held, a check too many is refused at once, and the others are done later")
    func refusal() async throws {
        let workers = PasswordWorkers(
            threads: 2, admission: PasswordAdmission(total: 4, perAddress: 3))
        let gate = ThreadGate()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<3 {
                group.addTask { try await Self.check(workers, Self.caller("a", "\(number)")) { gate.wait() } }
            }
            // Addresses take turns: while a thread is free, the next address's check would be done before the third.
            await gate.waitUntilReached(by: 2)
            while workers.load.waiting < 1 { await Task.yield() }
            await #expect(throws: EngineError(.busy)) {
                try await Self.check(workers, Self.caller("a", "3")) { Issue.record("it was run") }
            }
            #expect(!workers.load.isFull)
            group.addTask { try await Self.check(workers, Self.caller("b", "3")) {} }
            while workers.load.inProgress < 4 { await Task.yield() }
            #expect(workers.load.isFull)
            await #expect(throws: EngineError(.busy)) { try await Self.check(workers, Self.caller("c", "4")) {} }
            gate.open()
            try await group.waitForAll()
        }
        #expect(!workers.load.isFull)
    }

    @Test("What fails frees its place, and its error comes back")
    func failure() async throws {
        struct Failed: Error {}
        let workers = PasswordWorkers(threads: 1, admission: PasswordAdmission(total: 1))
        for _ in 0..<3 {
            await #expect(throws: Failed.self) {
                try await Self.check(workers, Self.caller("a", "x")) { throw Failed() }
            }
        }
        #expect(workers.load.inProgress == 0)
    }

    #if os(Linux)
    @Test("Work runs on a thread of a lower priority than the one it came from")
    func priority() async throws {
        let own = getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0)
        let workers = PasswordWorkers(threads: 1, admission: Self.wide)
        let seen = Locked<Int32>(0)
        try await Self.check(workers, Self.caller("a", "x")) {
            let value = getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0)
            seen.withLock { $0 = value }
        }
        #expect(seen.withLock { $0 } == max(own, PasswordWorkers.niceValue))
        #expect(getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0) == own)
    }
    #endif

    @Test("A check that is refused because the server is busy counts no attempt against the user")
    func busyCountsNothing() async throws {
        let fixture = try await JourneyFixture()
        let derivation = HeldDerivation()
        let passwords = Passwords(
            fixture.context,
            policy: PasswordPolicy(logN: 4, parallelChecks: 1, waitingChecks: 1, checksPerAddress: 1),
            limits: SignInLimits(attempts: 2), derivation: derivation)
        @Sendable func check(_ password: String, from address: String) async throws -> Passwords.Check {
            try await passwords.check(
                username: "ana", password: Secret(password), realm: "/alpha", from: address)
        }
        try await withThrowingTaskGroup(of: Passwords.Check.self) { group in
            group.addTask { try await check("wrong", from: "a") }
            await derivation.gate.waitUntilReached()
            for _ in 0..<10 {
                await #expect(throws: EngineError(.busy)) { try await check("wrong", from: "a") }
            }
            derivation.gate.open()
            for try await result in group { #expect(result == .wrong) }
        }
        // One of two attempts is left.
        #expect(try await check(JourneyFixture.password, from: "a") == .right(fixture.ana))
    }

    private static func check(
        _ workers: PasswordWorkers, _ caller: PasswordCaller, _ work: @escaping @Sendable () throws -> Void
    ) async throws {
        try await workers.admitting(caller) { try await workers.run(for: caller, work) }
    }
}

/// scrypt that is held up until a gate is opened.
private final class HeldDerivation: PasswordDerivation {
    let gate = ThreadGate()

    func derive(_ password: Secret, salt: [UInt8], cost: PasswordHash.Cost, byteCount: Int) throws -> [UInt8] {
        gate.wait()
        return try ScryptDerivation().derive(password, salt: salt, cost: cost, byteCount: byteCount)
    }
}

/// Holds threads up until it is opened, and lets a task wait until threads have come to it.
private final class ThreadGate: Sendable {
    private let condition = NSCondition()
    private let isOpen = Locked(false)
    private let reached = Locked(0)

    func open() {
        condition.lock()
        isOpen.withLock { $0 = true }
        condition.broadcast()
        condition.unlock()
    }

    func wait() {
        reached.withLock { $0 += 1 }
        condition.lock()
        while !isOpen.withLock({ $0 }) { condition.wait() }
        condition.unlock()
    }

    /// Waits until so many threads have come to it.
    func waitUntilReached(by count: Int = 1) async {
        while reached.withLock({ $0 }) < count { await Task.yield() }
    }
}
