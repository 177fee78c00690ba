import AssentCore
import AssentPeers
import AssentTesting
import Foundation
import TestSupport
import Testing

@testable import AssentVault

@Suite("Leases")
struct LeaseTests {
    /// Another process that holds the vault's lock on a name. It says so in a line, and goes when it is told to.
    private final class Holder {
        private let process: SpawnedProcess
        /// `held` or `busy`.
        let answer: String

        init(_ lockFile: URL, offset: Int64) throws {
            let program = """
                import fcntl, os, struct, sys
                file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
                lock = struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, int(sys.argv[2]), 1, 0)
                try:
                    fcntl.fcntl(file, 37, lock)
                except BlockingIOError:
                    sys.exit(print('busy', end='', flush=True))
                print('held', end='', flush=True)
                sys.stdin.readline()
                """
            process = try SpawnedProcess(
                "/usr/bin/env", ["python3", "-c", program, lockFile.path, "\(offset)"], input: .pipe, output: .pipe)
            answer = String(decoding: process.output?.availableData ?? Data(), as: UTF8.self)
        }

        func letGo() throws {
            try process.input?.write(contentsOf: Data("\n".utf8))
            _ = process.wait()
        }

        func kill() {
            process.signal(SIGKILL)
            _ = process.wait()
        }
    }

    private static func holder(of name: String, in directory: TemporaryDirectory, _ vault: FileVault) async throws
        -> Holder
    {
        let offset = try await VaultSealer.lockOffset(of: name, vaultID: vault.current().header.vaultID)
        return try Holder(directory.vault.appending(path: PosixDirectory.lockFile), offset: offset)
    }

    #if os(Linux)
    @Test("Another process's lease excludes this one, until it lets go or is killed", arguments: [false, true])
    func otherProcess(killed: Bool) async throws {
        let directory = try TemporaryDirectory()
        let vault = try await directory.open()
        let holder = try await Self.holder(of: "tokens", in: directory, vault)
        #expect(holder.answer == "held")
        #expect(await code { _ = try await vault.lease("tokens", deadline: .distantPast) } == .busy)
        let other = try await vault.lease("other", deadline: .distantPast)
        await other.release()
        try await vault.update("tokens", to: Secret("x"), expected: .absent)

        let waiting = Task { try await vault.lease("tokens", deadline: .distantFuture) }
        if killed { holder.kill() } else { try holder.letGo() }
        let lease = try await waiting.value
        await lease.release()
    }

    @Test("A lease is closed to other processes while it is held, even when other descriptors of the file are closed")
    func ourLeaseExcludesOthers() async throws {
        let directory = try TemporaryDirectory()
        let vault = try await directory.open()
        let lease = try await vault.lease("tokens", deadline: .distantFuture)
        // Opens and closes the lock file several times.
        let other = try await directory.open()
        for number in 0..<3 { try await other.update("name", to: Secret("\(number)"), expected: .any) }
        #expect(try await Self.holder(of: "tokens", in: directory, vault).answer == "busy")
        #expect(await code { _ = try await other.lease("tokens", deadline: .distantPast) } == .busy)
        await lease.release()
        let holder = try await Self.holder(of: "tokens", in: directory, vault)
        #expect(holder.answer == "held")
        try holder.letGo()
    }

    @Test("An update waits for another process's update no longer than it should, and reading waits for nobody")
    func updateLock() async throws {
        let directory = try TemporaryDirectory()
        let vault = try await directory.open()
        try await vault.update("name", to: Secret("1"), expected: .absent)
        let holder = try Holder(directory.vault.appending(path: PosixDirectory.lockFile), offset: 0)
        #expect(holder.answer == "held")
        let impatient = try await FileVault.open(directory.vault, keys: directory.keys, lockTimeout: 0)
        #expect(await code { try await impatient.update("name", to: Secret("2"), expected: .any) } == .busy)
        #expect(try await impatient.value("name")?.value == Secret("1"))
        let waiting = Task { try await vault.update("name", to: Secret("2"), expected: .exactly(1)) }
        holder.kill()
        #expect(try await waiting.value == 2)
    }
    #endif

    @Test("A waiting lease ends when the clock reaches its deadline, and not before")
    func deadline() async throws {
        let clock = ManualClock()
        let store = MemorySecretStore(clock: clock)
        let held = try await store.lease("name", deadline: clock.now)
        let deadline = clock.now.addingTimeInterval(30)
        let waiting = Task { try await store.lease("name", deadline: deadline) }
        try await until { clock.sleeperCount > 0 }
        clock.advance(by: 29)
        #expect(clock.sleeperCount == 1)
        clock.advance(by: 1)
        await #expect(throws: SecretStoreError.busy) { _ = try await waiting.value }
        await held.release()
        let next = try await store.lease("name", deadline: .distantPast)
        await next.release()
        #expect(clock.sleeperCount == 0)
    }

    @Test("A lease that waits for another vault sleeps on the clock in between")
    func otherVaultAndClock() async throws {
        let directory = try TemporaryDirectory()
        let holder = try await directory.open()
        let held = try await holder.lease("name", deadline: .distantFuture)
        let clock = ManualClock()
        let vault = try await FileVault.open(
            directory.vault, keys: directory.keys, clock: clock)
        let deadline = clock.now.addingTimeInterval(30)
        let waiting = Task { try await vault.lease("name", deadline: deadline) }
        try await until { clock.sleeperCount > 0 }
        clock.advance(by: 31)
        await #expect(throws: SecretStoreError.busy) { _ = try await waiting.value }
        let again = Task { try await vault.lease("name", deadline: .distantFuture) }
        try await until { clock.sleeperCount > 0 }
        again.cancel()
        await #expect(throws: CancellationError.self) { _ = try await again.value }
        await held.release()
        let next = try await vault.lease("name", deadline: clock.now)
        await next.release()
    }

    @Test("Those who wait get their turn in the order in which they came")
    func fairness() async throws {
        let queue = NameQueue()
        let first = try await queue.acquire("name", deadline: .distantPast, clock: SystemClock())
        let order = Locked<[Int]>([])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<10 {
                group.addTask {
                    let turn = try await queue.acquire("name", deadline: .distantFuture, clock: SystemClock())
                    order.withLock { $0.append(number) }
                    await Task.yield()
                    queue.release(turn)
                }
                try await until { queue.count("name") >= number + 2 }
            }
            queue.release(first)
            try await group.waitForAll()
        }
        #expect(order.withLock { $0 } == Array(0..<10))
        #expect(queue.count("name") == 0)
    }

    @Test("A waiter that gives up does not stop those behind it")
    func givingUp() async throws {
        let queue = NameQueue()
        let clock = ManualClock()
        let first = try await queue.acquire("name", deadline: .distantFuture, clock: clock)
        let impatient = Task {
            try await queue.acquire("name", deadline: clock.now.addingTimeInterval(5), clock: clock)
        }
        try await until { queue.count("name") >= 2 }
        let cancelled = Task { try await queue.acquire("name", deadline: .distantFuture, clock: clock) }
        try await until { queue.count("name") >= 3 }
        let patient = Task { try await queue.acquire("name", deadline: .distantFuture, clock: clock) }
        try await until { queue.count("name") >= 4 && clock.sleeperCount >= 3 }
        clock.advance(by: 5)
        await #expect(throws: SecretStoreError.busy) { _ = try await impatient.value }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { _ = try await cancelled.value }
        queue.release(first)
        queue.release(try await patient.value)
        #expect(queue.count("name") == 0)
    }

    @Test("A clock that is set back lets nobody wait longer for a turn")
    func setBack() async throws {
        let queue = NameQueue()
        let clock = ManualClock()
        let first = try await queue.acquire("name", deadline: .distantFuture, clock: clock)
        let waiting = Task {
            try await queue.acquire("name", deadline: clock.now.addingTimeInterval(5), clock: clock)
        }
        try await until { queue.count("name") >= 2 && clock.sleeperCount >= 1 }
        clock.put(by: -3600)
        clock.advance(by: 5)
        try await until { queue.count("name") == 1 || clock.sleeperCount > 0 }
        #expect(queue.count("name") == 1)
        waiting.cancel()
        await #expect(throws: SecretStoreError.busy) { _ = try await waiting.value }
        queue.release(first)
    }

    @Test("However a wait ends, at most one holds the lease")
    func cancellationRaces() async throws {
        let directory = try TemporaryDirectory()
        let vault = try await directory.open()
        let inside = Locked(0)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<60 {
                let worker = Task {
                    try await vault.withExclusiveAccess("name", deadline: .distantFuture) {
                        #expect(
                            inside.withLock { count in
                                count += 1; return count
                            } == 1)
                        await Task.yield()
                        inside.withLock { $0 -= 1 }
                    }
                }
                group.addTask {
                    if !number.isMultiple(of: 3) {
                        for _ in 0..<(number % 7) { await Task.yield() }
                        worker.cancel()
                    }
                    _ = await worker.result
                }
            }
        }
        let next = try await vault.lease("name", deadline: .distantPast)
        await next.release()
        #expect(vault.leaseCount("name") == 0)
    }
}
