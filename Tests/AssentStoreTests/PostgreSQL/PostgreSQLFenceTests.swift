#if PostgreSQL && os(Linux)
import AssentCore
import Foundation
import TestSupport
import Testing

@testable import AssentStore

@Suite("PostgreSQL: a commit that confirms others, a look at all hosts, and the file of what a node remembers")
struct PostgreSQLFenceTests {
    private static func sighting(_ startedAt: Int64, timeline: Int = 1, _ tokens: [String]) -> ServerSighting {
        ServerSighting(
            incarnation: .init(system: "s", timeline: "\(timeline)", startedAt: startedAt),
            generations: tokens.enumerated().map { index, token in
                DatabaseGeneration(
                    number: Int64(index + 1), token: token, system: "s", timeline: "\(index + 1)", isRestored: false)
            }, marks: [:])
    }

    @Test("Only the run of the server that it is asked of confirms anything, and only what came before")
    func fence() async throws {
        let place = try await PostgreSQLPlace()
        try await offPool { [configuration = place.configuration] in
            let host = try #require(configuration.hosts.first)
            let session = try PostgreSQLOpening(configuration: configuration).open(host, bell: PostgreSQLBell())
            let run = try PostgreSQLLook(session: session).sighting().incarnation
            let another = ServerIncarnation(
                system: run.system, timeline: run.timeline, startedAt: run.startedAt + 1)
            let fence = PostgreSQLFence(configuration)
            defer { fence.end() }
            let later = ContinuousClock.now + .seconds(Patience.seconds)
            #expect(!fence.hasPassed(run))
            #expect(try fence.pass(run, at: host, until: later))
            #expect(fence.hasPassed(run) && !fence.hasPassed(another))
            // Another run of the server may be an old primary, or one that lost its memory. Nothing is expected of it.
            #expect(throws: StoreError(.unavailable, "")) { try fence.pass(another, at: host, until: later) }
            #expect(fence.hasPassed(run) && !fence.hasPassed(another))
            // What has become visible since needs a commit that began since.
            fence.distrust(run, at: .init("/tmp/missing"))
            #expect(!fence.hasPassed(run))
            #expect(try fence.pass(run, at: host, until: later))
            #expect(fence.hasPassed(run))
            fence.end()
            #expect(try !fence.pass(run, at: host, until: later))
        }
    }

    @Test("Who waits for a server that is away keeps nobody from another one, and is told when that one is used")
    func twoRuns() async throws {
        var place = try await PostgreSQLPlace()
        place.configuration.overdueLimit = 1_000
        try await offPool { [configuration = place.configuration] in
            let host = try #require(configuration.hosts.first)
            let session = try PostgreSQLOpening(configuration: configuration).open(host, bell: PostgreSQLBell())
            let run = try PostgreSQLLook(session: session).sighting().incarnation
            let away = ServerIncarnation(system: run.system, timeline: run.timeline, startedAt: run.startedAt + 1)
            let fence = PostgreSQLFence(configuration)
            defer { fence.end() }
            let later = ContinuousClock.now + .seconds(Patience.seconds)
            let missing = PostgreSQLConfiguration.Host("/tmp/missing")
            #expect(try !fence.pass(away, at: missing, until: .now + .milliseconds(20)))
            #expect(try fence.pass(run, at: host, until: later))
            while !fence.isOverdue(away) { _ = poll(nil, 0, 20) }
            #expect(fence.isOverdue && !fence.isOverdue(run))
            let isRefused = Locked<Bool?>(nil)
            Thread.detachNewThread {
                let hasPassed = try? fence.pass(away, at: missing, until: later)
                isRefused.withLock { $0 = hasPassed == nil }
            }
            // Again and again: the thread may ask only afterwards.
            while isRefused.withLock({ $0 == nil }) {
                fence.settle(on: run)
                _ = poll(nil, 0, 20)
            }
            #expect(isRefused.withLock { $0 == true })
            #expect(!fence.isOverdue && fence.hasPassed(run) && !fence.hasPassed(away))
            // What is not used any more confirms anew when it is used again, also what it may have shown meanwhile.
            fence.distrust(run)
            #expect(!fence.hasPassed(run) && !fence.isOverdue)
            #expect(try fence.pass(run, at: host, until: later))
            #expect(fence.hasPassed(run))
            fence.settle(on: away)
            #expect(!fence.hasPassed(run))
            fence.distrust(run)
            #expect(try fence.pass(run, at: host, until: later))
            #expect(fence.hasPassed(run))
        }
    }

    @Test("How long a commit may be outstanding before nothing more is begun is a setting", arguments: [true, false])
    func overdue(isImpatient: Bool) {
        let run = ServerIncarnation(system: "s", timeline: "1", startedAt: 1)
        let away = PostgreSQLConfiguration.Host("/tmp/missing")
        var configuration = PostgreSQLConfiguration(hosts: [away], database: "d", user: "u")
        configuration.bePatient(seconds: Patience.seconds)
        if isImpatient { configuration.overdueLimit = -1 }
        let fence = PostgreSQLFence(configuration)
        defer { fence.end() }
        fence.request(run, at: away)
        #expect(fence.isOverdue == isImpatient && fence.isOverdue(run) == isImpatient)
    }

    @Test("A server that does not let commits wait for a standby confirms nothing where one is required")
    func standbyRequired() async throws {
        var place = try await PostgreSQLPlace()
        place.configuration.requiresStandby = true
        try await offPool { [configuration = place.configuration] in
            let host = try #require(configuration.hosts.first)
            let session = try PostgreSQLOpening(configuration: configuration).open(host, bell: PostgreSQLBell())
            let look = PostgreSQLLook(session: session)
            #expect(try !look.replication().isDemanded)
            try look.fence { true }
            #expect(throws: StoreError(.unavailable, "")) { try look.fence(requiresStandby: true) { true } }
            let run = try look.sighting().incarnation
            let fence = PostgreSQLFence(configuration)
            defer { fence.end() }
            #expect(try !fence.pass(run, at: host, until: .now + .milliseconds(100)))
            #expect(!fence.hasPassed(run))
        }
    }

    @Test(
        "A commit is let wait for a standby if one is named, and if it waits for the standby's disk",
        arguments: [
            ("", "on", false), ("", "remote_apply", false), ("a", "on", true), ("a", "remote_apply", true),
            ("a", "remote_write", false), ("a", "local", false), ("a", "off", false), ("a", "", false),
        ])
    func replication(standbys: String, commits: String, isDemanded: Bool) {
        let replication = PostgreSQLLook.Replication(
            standbys: standbys, commits: commits, loadedAt: 0, startedAt: 0)
        #expect(replication.isDemanded == isDemanded)
        // Whatever was changed while a commit waited makes it another one.
        for other in [
            PostgreSQLLook.Replication(standbys: standbys + "b", commits: commits, loadedAt: 0, startedAt: 0),
            .init(standbys: standbys, commits: commits + "x", loadedAt: 0, startedAt: 0),
            .init(standbys: standbys, commits: commits, loadedAt: 1, startedAt: 0),
            .init(standbys: standbys, commits: commits, loadedAt: 0, startedAt: 1),
        ] { #expect(other != replication) }
    }

    @Test("Of all hosts the one is used that accepts writes and has everything; if there is none, it is said why")
    func survey() throws {
        let configuration = PostgreSQLConfiguration(
            hosts: [.init("one"), .init("two"), .init("three")], database: "d", user: "u")
        let (old, new) = (Self.sighting(1, ["a"]), Self.sighting(2, timeline: 2, ["a", "b"]))
        let found = PostgreSQLSurvey(findings: [.writable(old), .unreachable("no"), .writable(new)])
        #expect(found.choice == .host(2, behind: [0]) && found.chosen == new)
        #expect(try found.host(in: configuration) == configuration.hosts[2])
        let single = PostgreSQLSurvey(findings: [.standby, .writable(old), .unreachable("no")])
        #expect(single.choice == .host(1, behind: []) && single.chosen == old)
        let nobody = PostgreSQLSurvey(findings: [.standby, .unreachable("It is off."), .standby])
        #expect(nobody.choice == .nobody && nobody.chosen == nil)
        var error = #expect(throws: StoreError(.unavailable, "")) { try nobody.host(in: configuration) }
        #expect(error?.obstacle == .noServer && error?.detail.contains("It is off.") == true)
        #expect(error?.detail.contains("is a standby") == true)
        let other = Self.sighting(3, timeline: 2, ["a", "c"])
        let conflict = PostgreSQLSurvey(findings: [.writable(new), .standby, .writable(other)])
        #expect(conflict.choice == .conflict([0, 2]) && conflict.chosen == nil)
        error = #expect(throws: StoreError(.unavailable, "")) { try conflict.host(in: configuration) }
        #expect(error?.obstacle == .serversDiffer && error?.detail.contains("one:") == true)
        #expect(error?.detail.contains("two:") == false)
    }

    @Test("A link where the file of what a node remembers belongs is neither read nor written through")
    func links() throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "memory-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: directory) }
        let memory = NodeMemory(generation: 1, token: "a", mark: 5)
        let victim = directory.appending(path: "victim").path
        try NodeMemoryFile(path: victim).write(memory)
        let path = directory.appending(path: "memory.json").path
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: victim)
        let file = NodeMemoryFile(path: path)
        #expect(throws: StoreError(.unavailable, "")) { try file.read() }
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.createSymbolicLink(atPath: path + ".new", withDestinationPath: victim)
        let newer = NodeMemory(generation: 2, token: "b", mark: 6)
        #expect(throws: StoreError(.unavailable, "")) { try file.write(newer) }
        #expect(try NodeMemoryFile(path: victim).read() == memory)
        #expect(try file.read() == nil)
    }
}
#endif
