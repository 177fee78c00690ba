import AssentCore
import AssentEngine
import AssentServer
import AssentSigningProtocol
import AssentStore
import Foundation
import HTTPTypes
import SigningTesting

/// From the fetch of a document to the receipt of its approval over HTTPS on loopback, the device's own cryptography
/// included, against two bare HTTPS calls to the same process by the same client: latency, in blocks that take turns.
struct FetchToDecideBenchmark: Benchmark {
    static let name = "fetch-to-decide"
    static let summary = "fetch and approval of a document over HTTPS against two bare HTTPS calls"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    /// A container may make 120 calls in a minute.
    private static let pairs = 40
    private static let block = 10

    @concurrent
    func run() async throws -> [Comparison] {
        let directory = try setting.workspace.directory("fetch-to-decide")
        let server = try BenchServer(in: directory)
        defer { server.stop() }
        let issuer = try HTTPIssuer(server)
        let database = try await DatabaseLocation.sqlite(path: directory + "/data/assent.sqlite")
            .open(clock: SystemClock())
        var comparison = Comparison(
            benchmark: Self.name, title: "fetch to decide / two bare HTTPS calls, latency", unit: "s",
            aim: .atMost(25))
        let rounds = setting.rounds(9, quick: 2)
        for round in 0...rounds {
            let (device, container) = try await issuer.enrolled()
            let txns = try await Self.transactions(device, container, database)
            var (ours, theirs): ([Double], [Double]) = ([], [])
            for start in stride(from: 0, to: txns.count, by: Self.block) {
                for txn in txns[start..<min(start + Self.block, txns.count)] {
                    ours.append(
                        try await Self.seconds { _ = try await device.approve(txn, container) })
                }
                for _ in 0..<Self.block {
                    theirs.append(
                        try await Self.seconds {
                            try await issuer.ping()
                            try await issuer.ping()
                        })
                }
            }
            // The first round warms both up.
            guard round > 0 else { continue }
            comparison.add(subject: Figure.median(ours), baseline: Figure.median(theirs), of: rounds)
        }
        try await database.close()
        return [comparison]
    }

    private static func seconds(_ body: () async throws -> Void) async throws -> Double {
        let clock = ContinuousClock()
        let start = clock.now
        try await body()
        return (clock.now - start).inSeconds
    }

    /// Open transactions of a container: copies of one that the device has begun, made an hour ago, since only a few
    /// may be begun in a minute.
    private static func transactions(
        _ device: TestDevice, _ container: TestDevice.Enrolled, _ database: any SQLDatabase
    ) async throws -> [SigningID] {
        let _: Fetched = try await device.askSealed(
            "transactions/create", container.did,
            CreateBody(
                message: "Pay 200.00 EUR to Bob", label: "payments", rid: SigningID(random: device.random)))
        let row = try await database.run(
            .read("SELECT * FROM signing_transactions WHERE did = \(container.did.text)")
        ).first
        guard let row else { throw BenchFailure("no transaction") }
        let made = try row.text("txn")
        let others = row.names.filter { !["txn", "created_at", "expires_at", "idempotency_key"].contains($0) }
        let columns = SQL(verbatim: others.joined(separator: ", "))
        let now = SystemClock().epochSeconds
        let ids = (0..<pairs).map { _ in SigningID(random: device.random) }
        _ = try await database.run(
            ids.map { id in
                SQLStatement(
                    """
                    INSERT INTO signing_transactions (txn, created_at, expires_at, \(columns))
                    SELECT \(id.text), \(now - 3600), \(now + 3000), \(columns) FROM signing_transactions
                    WHERE txn = \(made)
                    """, expecting: .exactly(1))
            } + [SQLStatement("DELETE FROM signing_transactions WHERE txn = \(made)", expecting: .exactly(1))])
        return ids
    }
}

/// The issuer of a server in another process, over HTTPS on kept connections. A device keeps the newest nonce, and the
/// configuration.
private final class HTTPIssuer: TestIssuer {
    let name: String
    private let serverURL: String
    private let session: String
    private let transport: any HTTPTransport
    private let known = Locked<(bytes: [UInt8], nonce: String)?>(nil)

    init(_ server: BenchServer) throws {
        serverURL = server.url
        session = server.session
        name = server.url + "/signing/realms/root/realms/alpha"
        transport = try server.transport()
    }

    func configuration() async throws -> (bytes: [UInt8], nonce: String) {
        if let known = known.withLock({ $0 }) { return known }
        let reply = try await send(HTTPRequest(.get, url: name + "/configuration"))
        let made = (bytes: reply.bytes, nonce: reply.nonce ?? "")
        known.withLock { $0 = made }
        return made
    }

    func send(_ path: String, proof: String?, body: String) async throws -> String {
        var request = try HTTPRequest(.post, url: name + "/device/" + path)
        request.headerFields[.contentType] = "application/jose"
        if let proof, let field = HTTPField.Name("TSP-Proof") { request.headerFields[field] = proof }
        let reply = try await send(request, Array(body.utf8))
        guard reply.status == 200 else {
            throw BenchFailure("\(path) answers \(String(decoding: reply.bytes, as: UTF8.self))")
        }
        if let nonce = reply.nonce { known.withLock { $0?.nonce = nonce } }
        return String(decoding: reply.bytes, as: UTF8.self)
    }

    /// A call that does nothing.
    func ping() async throws {
        let root = serverURL.dropLast("/am".count)
        let reply = try await send(HTTPRequest(.get, url: root + "/healthz"))
        guard reply.status == 200 else { throw BenchFailure("/healthz answers \(reply.status)") }
    }

    /// A device that may approve.
    func enrolled() async throws -> (device: TestDevice, container: TestDevice.Enrolled) {
        let invite = try await ask("invites", [:])
        guard let pid = invite["pid"]?.string,
            let code = invite["code"]?.string.flatMap({ InviteCode(typed: $0) })
        else { throw BenchFailure("no invite: \(invite.serialized())") }
        let device = try TestDevice(self)
        let container = try await device.enrol(code)
        let state = try await ask("invites/\(pid)/digits", ["digits": .string(container.digits)])[
            "state"]
        guard state == "ACTIVE" else { throw BenchFailure("the device is not enrolled") }
        return (device, container)
    }

    private func ask(_ path: String, _ body: JSONValue) async throws -> JSONValue {
        var request = try HTTPRequest(.post, url: name + "/" + path)
        request.headerFields[.contentType] = "application/json"
        if let field = HTTPField.Name("iPlanetDirectoryPro") {
            request.headerFields[field] = session
        }
        return try JSONValue.parse(try await send(request, body.serializedBytes()).bytes)
    }

    private func send(
        _ request: HTTPRequest, _ body: [UInt8]? = nil
    ) async throws -> (status: Int, nonce: String?, bytes: [UInt8]) {
        let reply = try await transport.send(HTTPCall(request, body: body.map { HTTPBody($0) }))
        let nonce = HTTPField.Name("TSP-Nonce").flatMap { reply.response.headerFields[$0] }
        return (reply.status, nonce, try await reply.body.collect(upTo: 1 << 20))
    }
}
