import AssentCore
import AssentPayload
import AssentStore
import AssentTesting
import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTP1
import StoreTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

/// On both databases, by the gateway that a server makes of its parts, over a database that counts: a whole server
/// opens its own. `SealedRoundTripTests` counts round trips of a whole server.
@Suite("Payload encryption: statements of a sealed call and of the plain one, by the whole gateway")
struct SealedStatementTests {
    /// Who makes a call.
    private enum Caller: CaseIterable {
        case nobody
        case bearer
        case session
        /// With an access token of a key, and the key's proof.
        case proved
    }

    /// The gateway of a second set of parts on a server's database, and a session of payload encryption there.
    private struct Door {
        let tally: StatementTally
        let channel: SealedChannel
        private let door: SealedDoor

        init(_ fixture: ServerFixture, _ configuration: ServerConfiguration, _ upstream: Upstream) async throws {
            let server = fixture.server.context
            tally = StatementTally(server.database)
            let context = EngineContext(
                database: tally, clock: fixture.clock, random: SystemRandom(), masterKey: server.masterKey,
                logger: server.logger)
            let location = DatabaseLocation.sqlite(path: "")
            let hold = try #require(try await location.hold(node: context.node))
            let parts = try ServerParts(
                context, configuration: configuration, keys: ServerKeys(context), passwords: fixture.server.passwords,
                cookie: SessionCookie(name: ServerFixture.cookieName),
                watch: NodeWatch(context, location, hold, clockLimit: nil), endpoints: fixture.endpoints,
                notifier: nil)
            try await parts.begin()
            let door = try #require(try parts.gatewayDoor(upstream: upstream))
            self.door = door
            let origin = try Origin(try #require(fixture.endpoints.gateway))
            let handshake = try SealedChannel.handshake(at: origin, try await SealedClient.key(context))
            channel = try await SealedChannel(at: origin, handshake) { body in
                try await Self.answer(
                    door, .post, SealedDoor.handshakePath, [.contentType: "application/json"], body, at: origin)
            }
        }

        func send(
            _ method: HTTPRequest.Method, _ path: String, _ fields: HTTPFields, _ body: [UInt8]
        ) async throws -> Answer {
            try await Self.answer(door, method, path, fields, body, at: channel.origin)
        }

        private static func answer(
            _ door: SealedDoor, _ method: HTTPRequest.Method, _ path: String, _ fields: HTTPFields, _ body: [UInt8],
            at origin: Origin
        ) async throws -> Answer {
            let head = HTTPRequest(
                method: method, scheme: "https", authority: origin.authority, path: path, headerFields: fields)
            let request = Request(head: head, body: RequestBody(buffer: ByteBuffer(bytes: body)))
            let response = try await door.respond(to: request, from: ClientAddress(nil))
            let bytes = Locked<[UInt8]>([])
            try await response.body.write(Collector(bytes: bytes))
            return Answer(status: response.status.code, fields: HTTPHeaders(), bytes: bytes.withLock { $0 })
        }
    }

    @Test("40: As many for each caller, and on a shared database the one row of an unsafe call")
    func calls() async throws {
        try await ServerFixture.run { fixture in
            var configuration = try ServerConfiguration.parse(
                FixtureConfiguration.yaml(upstream: fixture.upstream.port, refusing: fixture.refusing.port),
                file: fixture.directory + "/assent.yaml")
            // The clock is the test's, as the server's own is.
            configuration.clockDifferenceSeconds = nil
            let upstream = try Upstream(
                (configuration.gateway?.routes ?? []).map(\.upstream), clock: fixture.clock,
                logger: fixture.server.context.logger)
            do {
                try await count(fixture, try await Door(fixture, configuration, upstream))
            } catch {
                await upstream.shutdown()
                throw error
            }
            await upstream.shutdown()
            #expect(fixture.upstream.requests.count == 3 * 4 * 2 * 2)
        }
    }

    private func count(_ fixture: ServerFixture, _ door: Door) async throws {
        let key = try ProofKey()
        let session = try await fixture.session()
        let token = try await fixture.tokens(session: session).access
        let bound = try await fixture.boundToken(session: session, to: key)
        func fields(_ caller: Caller, _ method: HTTPRequest.Method, _ path: String) async throws -> HTTPFields {
            let items: [(String, String)] =
                switch caller {
                case .nobody: []
                case .bearer: ServerFixture.bearer(token)
                case .session: ServerFixture.session(session)
                case .proved:
                    try await fixture.proved(method.rawValue, fixture.gateway(path), token: bound, by: key)
                }
            var fields: HTTPFields = method == .post ? [.contentType: "application/json", .contentLength: "2"] : [:]
            for (name, value) in items {
                fields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
            }
            return fields
        }
        var number: UInt64 = 0
        for round in 0..<3 {
            for caller in Caller.allCases {
                for method in [HTTPRequest.Method.get, .post] {
                    let path = caller == .nobody ? "/open" : "/files/x"
                    let content = method == .post ? Array("{}".utf8) : []
                    let status = method == .post ? 201 : 200
                    let plainFields = try await fields(caller, method, path)
                    var before = door.tally.count
                    let answer = try await door.send(method, path, plainFields, content)
                    let plain = door.tally.count - before
                    #expect(answer.status == status, "\(caller), \(method): \(answer.text)")

                    number += 1
                    let call = door.channel.request(method, path, try await fields(caller, method, path))
                    let frame = try door.channel.sealed(call, content, number: number)
                    before = door.tally.count
                    let reply = try await door.send(
                        .post, SealedDoor.messagePath, [.contentType: SealedReply.mediaType], frame.bytes)
                    let opened = try door.channel.open(reply, to: frame.head)
                    let sealed = door.tally.count - before
                    #expect(opened.status == status, "\(caller), \(method)")
                    // The first round reads keys, and writes down that the session is in use.
                    guard round > 0 else { continue }
                    #expect((plain == 0) == (caller == .nobody), "\(caller), \(method): \(plain)")
                    let row = TestDatabase.isPostgreSQL && method == .post ? 1 : 0
                    #expect(sealed == plain + row, "\(caller), \(method): \(plain), \(sealed)")
                }
            }
        }
    }
}

/// Keeps the content of a reply.
private struct Collector: ResponseBodyWriter {
    let bytes: Locked<[UInt8]>

    mutating func write(_ buffer: ByteBuffer) async throws { bytes.withLock { $0 += Array(buffer: buffer) } }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
}
