#if PostgreSQL && os(Linux)
import AssentCore
import Foundation
import Logging
import StoreTesting
import TestSupport
import Testing

@testable import AssentStore

@Suite("PostgreSQL: what waits for a commit of a server that is over", .serialized)
struct PostgreSQLEndedRunTests {
    private let pair: PostgreSQLPair

    init() async throws {
        pair = try await PostgreSQLPair.reused()
        try await pair.replicate()
    }

    /// A thread that waits for a commit, of which the standby says nothing.
    private final class Waiter: Sendable {
        let keeper: PostgreSQLKeeper
        private let isOpen = Locked(false)
        private let begins = Locked(false)
        private let result = Locked<Result<Bool, any Error>?>(nil)

        init(_ configuration: PostgreSQLConfiguration, link: PostgreSQLProxy) async throws {
            // Until the standby is silent it may take its time.
            var patient = configuration
            patient.bePatient(seconds: Patience.seconds)
            try await DatabaseLocation.postgresql(patient)
                .open(schema: SQLDatabaseContract.schema, clock: SystemClock()).close()
            // Its first commit is confirmed before the standby is silent. Only `overdueLimit` has to be short.
            var unhurried = configuration
            unhurried.commitLimit = Patience.seconds * 1_000
            unhurried.waitLimit = Patience.seconds * 1_000
            keeper = PostgreSQLKeeper(
                unhurried, logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
            Thread.detachNewThread { [keeper, isOpen, begins, result] in
                let told = Result {
                    let session = try keeper.opening.open(bell: PostgreSQLBell())
                    isOpen.withLock { $0 = true }
                    while begins.withLock({ !$0 }) { _ = poll(nil, 0, 5) }
                    return try keeper.fence(session, until: .now + .seconds(Patience.seconds))
                }
                result.withLock { $0 = told }
            }
            while !isOpen.withLock({ $0 }), result.withLock({ $0 == nil }) { await Task.yield() }
            link.stall()
            begins.withLock { $0 = true }
            while keeper.refusal == nil, result.withLock({ $0 == nil }) { await Task.yield() }
        }

        deinit { keeper.end() }

        /// Calls `look` until it has an answer: whether the commit is confirmed.
        func answer(_ look: () async throws -> Void) async throws -> Bool {
            while true {
                if let result = result.withLock({ $0 }) { return try result.get() }
                try await look()
                await Task.yield()
            }
        }
    }

    @Test("It is told when the server was started again, and nobody is kept from writing by what is over")
    func restarted() async throws {
        var configuration = pair.configuration
        configuration.hosts.removeLast()
        let waiter = try await Waiter(configuration, link: pair.link)
        #expect(waiter.keeper.refusal?.obstacle == .standbySilent)
        try await pair.primary.offPool {
            try $0.stop("immediate")
            try $0.start()
        }
        await #expect(throws: StoreError(.unavailable, "")) { try await waiter.answer {} }
        #expect(waiter.keeper.refusal == nil)
        pair.link.resume()
        pair.giveBack()
    }

    @Test("It is told when the standby has taken the server's place")
    func promoted() async throws {
        let waiter = try await Waiter(pair.configuration, link: pair.link)
        pair.link.cutAll(refusing: true)
        try await pair.failOver()
        await #expect(throws: StoreError(.unavailable, "")) {
            try await waiter.answer { try await offPool { [keeper = waiter.keeper] in keeper.watch() } }
        }
        #expect(waiter.keeper.refusal == nil)
    }

    @Test("It is told when the address leads to another server, also while the connection to the old one stands")
    func moved() async throws {
        var configuration = pair.configuration
        configuration.hosts.removeLast()
        let proxy = try PostgreSQLProxy(configuration)
        let waiter = try await Waiter(proxy.configuration, link: pair.link)
        pair.link.cutAll(refusing: true)
        try await pair.standby.offPool { _ = try $0.sql("SELECT pg_promote()") }
        // The old one goes on, and its commit waits for a standby that does not come back.
        try await offPool { [keeper = waiter.keeper] in keeper.watch() }
        #expect(waiter.keeper.refusal?.obstacle == .standbySilent)
        proxy.lead(to: pair.configuration.hosts[1])
        await #expect(throws: StoreError(.unavailable, "")) {
            try await waiter.answer { try await offPool { [keeper = waiter.keeper] in keeper.watch() } }
        }
        #expect(waiter.keeper.refusal == nil)
    }
}
#endif
