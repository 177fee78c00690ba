#if PostgreSQL && os(Linux)
import AssentCore
import AssentPayload
import AssentStore
import AssentTesting
import Foundation
import HTTPTypes
import StoreTesting
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

/// A call sealed and plain, through the whole server, whose way to its database leads through a proxy that counts.
@Suite(
    "Payload encryption: round trips to the database of a sealed call and of the plain one",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct SealedRoundTripTests {
    /// Who makes a call.
    private enum Caller: CaseIterable {
        case nobody
        case bearer
        case session
        /// With an access token of a key, and the key's proof.
        case proved
    }

    /// A user with all credentials.
    private struct User {
        let fixture: ServerFixture
        let session: String
        let token: String
        let bound: String
        let key: ProofKey

        init(_ fixture: ServerFixture) async throws {
            self.fixture = fixture
            key = try ProofKey()
            session = try await fixture.session()
            token = try await fixture.tokens(session: session).access
            bound = try await fixture.boundToken(session: session, to: key)
        }

        func fields(_ caller: Caller, _ method: String, _ path: String) async throws -> [(String, String)] {
            switch caller {
            case .nobody: []
            case .bearer: ServerFixture.bearer(token)
            case .session: ServerFixture.session(session)
            case .proved: try await fixture.proved(method, fixture.gateway(path), token: bound, by: key)
            }
        }
    }

    private static func run(_ body: (ServerFixture, PostgreSQLProxy) async throws -> Void) async throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let server = try await PostgreSQLServer.shared()
        let proxy = try PostgreSQLProxy(try await offPool { try server.makeDatabase() })
        let node = FixtureNode(
            database: proxy.configuration, keyFile: directory + "/key", isOneOfSeveral: false)
        let fixture = try await ServerFixture(
            node: node,
            configuring: TwoNodes.countingTrips)
        // It reports to other nodes before it sleeps: a late report would be counted.
        while fixture.clock.sleeperCount == 0, !Task.isCancelled { await Task.yield() }
        do {
            try await body(fixture, proxy)
        } catch {
            await fixture.stop()
            throw error
        }
        await fixture.stop()
    }

    @Test("40: A sealed call takes as many as the plain one, and one more where it is unsafe")
    func calls() async throws {
        try await Self.run { fixture, proxy in
            let user = try await User(fixture)
            let client = try await SealedClient(fixture, SealedClient.key(fixture))
            var number: UInt64 = 0
            for round in 0..<3 {
                for caller in Caller.allCases {
                    for method in [HTTPRequest.Method.get, .post] {
                        let path = caller == .nobody ? "/open" : "/files/x"
                        let content = method == .post ? Array("{}".utf8) : []
                        var plain = try await user.fields(caller, method.rawValue, path)
                        var sealed = try await user.fields(caller, method.rawValue, path)
                        if method == .post {
                            plain.append(("Content-Type", "application/json"))
                            sealed.append(("Content-Type", "application/json"))
                        }
                        var before = proxy.roundTrips
                        let answer = try await fixture.send(
                            method.rawValue, fixture.gateway(path), plain, body: method == .post ? content : nil)
                        let plainTrips = proxy.roundTrips - before

                        number += 1
                        var fields = HTTPFields()
                        for (name, value) in sealed {
                            fields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
                        }
                        let frame = try client.sealed(client.request(method, path, fields), content, number: number)
                        before = proxy.roundTrips
                        let opened = try await client.call(frame)
                        let sealedTrips = proxy.roundTrips - before

                        let status = method == .post ? 201 : 200
                        #expect(
                            answer.status == status && opened.status == status,
                            "\(caller), \(method): \(answer.status), \(opened.status)")
                        // The first round reads keys and policies.
                        guard round > 0 else { continue }
                        let row = method == .post ? 1 : 0
                        #expect(sealedTrips == plainTrips + row, "\(caller), \(method): \(plainTrips)")
                    }
                }
            }
            #expect(fixture.upstream.requests.count == 3 * 4 * 2 * 2)
        }
    }
}
#endif
