#if os(Linux)
import AssentCore
import AssentSigningProtocol
import AssentStore
import AsyncHTTPClient
import Foundation
import SigningTesting
import StoreTesting
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

/// Processes of `assent serve` on one database that offer transaction signing, and devices that call them. One that was
/// killed is started again by whoever notices it first.
final class SigningNodes: TestIssuer {
    /// Which node the calls of a task go to.
    @TaskLocal static var index = 0

    /// Public URLs are a load balancer's; the ports behind it change with each start.
    let name = "https://localhost:8443/am/signing/realms/root/realms/alpha"

    /// How often a node was started, at first and in the place of one that had been killed.
    let starts = Locked(0)

    /// Where the write point is named at which a node is killed.
    let switchFile: String

    private let directory: String
    private let postgreSQL: PostgreSQLConfiguration?
    private let client = ServeProcess.makeClient()
    private let starter = Starter()
    private let password = Locked<String?>(nil)
    private let session = Locked<String?>(nil)
    private let asked = Locked(0)
    private let tokens = Locked<[Int: String]>([:])
    private let library: String?

    /// A call that had no answer.
    struct LostReply: Error {}

    /// What starts the nodes, each once.
    private actor Starter {
        private var nodes: [Int: Task<ServeProcess, any Error>] = [:]

        func node(_ index: Int, _ make: @escaping @Sendable () async throws -> ServeProcess) async throws
            -> ServeProcess
        {
            while let known = nodes[index] {
                if let node = try? await known.value, node.process.isRunning { return node }
                guard nodes[index] == known else { continue }
                break
            }
            let made = Task { try await make() }
            nodes[index] = made
            return try await made.value
        }

        func all() async -> [ServeProcess] {
            var all: [ServeProcess] = []
            for node in nodes.values { if let node = try? await node.value { all.append(node) } }
            return all
        }
    }

    /// Runs `body` with `count` nodes, and ends all processes. Several need PostgreSQL; with `switching` they can be
    /// killed at their write points.
    static func run(_ count: Int = 1, switching: Bool = false, _ body: (SigningNodes) async throws -> Void) async throws
    {
        let world = try await SigningNodes(count, switching: switching)
        do {
            for index in 0..<count { _ = try await world.node(index) }
            try await body(world)
        } catch {
            await world.stop()
            throw error
        }
        await world.stop()
    }

    private init(_ count: Int, switching: Bool) async throws {
        directory = try ServerFixture.makeDirectory()
        switchFile = directory + "/switch"
        if count > 1 {
            let server = try await PostgreSQLServer.shared()
            var configuration = try await offPool { try server.makeDatabase() }
            // For what this process opens beside the nodes, which read a file of their own.
            configuration.bePatient(seconds: Patience.seconds)
            postgreSQL = configuration
        } else if case .postgresql(let configuration) = try await TestDatabase.location(directory) {
            postgreSQL = configuration
        } else {
            postgreSQL = nil
        }
        library = switching ? try await Self.compile(in: directory) : nil
    }

    private static func compile(in directory: String) async throws -> String {
        let source = PythonPeer.folder + "/kill-at-write.c"
        let made = try await offPool {
            try FinishedProcess.run(
                "/usr/bin/env", ["clang", "-shared", "-fPIC", "-o", directory + "/kill.so", source, "-ldl"])
        }
        try #require(made.status == 0, "\(made.complaints)")
        return directory + "/kill.so"
    }

    private func stop() async {
        try? await client.shutdown()
        for node in await starter.all() { await node.process.stop() }
        try? FileManager.default.removeItem(atPath: directory)
    }

    // MARK: - Nodes

    /// A node that runs.
    func node(_ index: Int) async throws -> ServeProcess {
        try await starter.node(index) { [self] in
            let node = try await start(index)
            if let shown = node.password { password.withLock { $0 = shown } }
            starts.withLock { $0 += 1 }
            return node
        }
    }

    private func start(_ index: Int) async throws -> ServeProcess {
        // A switch that has worked kills nobody else.
        try? FileManager.default.removeItem(atPath: switchFile)
        let place = directory + "/\(index)"
        if !FileManager.default.fileExists(atPath: place) {
            try FileManager.default.createDirectory(
                atPath: place, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            var yaml = Self.yaml
            if let postgreSQL {
                yaml = try FixtureNode(database: postgreSQL, keyFile: directory + "/key").adapted(yaml)
            }
            try Data(yaml.utf8).write(to: URL(fileURLWithPath: place + "/assent.yaml"))
        }
        guard let library else { return try await ServeProcess.start(directory: place, client: client) }
        let environment = [
            "LD_PRELOAD=" + library, "KILL_BELOW=" + place + "/data", "KILL_PEER=\(PostgreSQLServer.place)",
            "KILL_AT=" + switchFile,
        ]
        return try await ServeProcess.start(directory: place, prefix: ["/usr/bin/env"] + environment, client: client)
    }

    /// The database, opened by this process beside the nodes, or after them.
    func openDatabase() async throws -> any SQLDatabase {
        let location = postgreSQL.map(DatabaseLocation.postgresql) ?? .sqlite(path: directory + "/0/data/assent.sqlite")
        return try await location.open(clock: SystemClock())
    }

    /// Repeats what a killed node has left without an answer, with another one in its place.
    static func again<Result>(_ body: () async throws -> Result) async throws -> Result {
        while true {
            do { return try await body() } catch is LostReply { try Task.checkCancellation() }
        }
    }

    // MARK: - Calls

    func configuration() async throws -> (bytes: [UInt8], nonce: String) {
        try await Self.again {
            let reply = try await send("GET", "configuration")
            return (reply.bytes, try #require(reply["TSP-Nonce"]))
        }
    }

    func send(_ path: String, proof: String?, body: String) async throws -> String {
        let fields = [("Content-Type", "application/jose")] + (proof.map { [("TSP-Proof", $0)] } ?? [])
        let reply = try await send("POST", "device/" + path, fields, text: body)
        guard reply.status == 200 else { throw TestRefusal(reply.json["code"]?.string ?? "status \(reply.status)") }
        return reply.text
    }

    private func send(
        _ method: String, _ path: String, _ fields: [(String, String)] = [], text: String? = nil
    ) async throws -> Answer {
        try await asking {
            try await $0.send(method, $0.server + "/signing/realms/root/realms/alpha/" + path, fields, text: text)
        }
    }

    /// Asks the task's node.
    private func asking<Result: Sendable>(_ body: (ServeProcess) async throws -> Result) async throws -> Result {
        let node = try await node(Self.index)
        do { return try await body(node) } catch { throw LostReply() }
    }

    /// What the page of the signed-in user asks.
    func ask(_ method: String, _ path: String, _ body: JSONValue? = nil) async throws -> Answer {
        try await Self.again {
            func send() async throws -> Answer {
                let session = try await signedIn()
                let json = body == nil ? [] : [("Content-Type", "application/json")]
                return try await self.send(
                    method, path, ServerFixture.session(session) + json, text: body?.serialized())
            }
            let answer = try await send()
            guard answer.status == 401 else { return answer }
            // These calls do not count as use of a session, which ends after half an hour without any.
            session.withLock { $0 = nil }
            return try await send()
        }
    }

    private func signedIn() async throws -> String {
        if let known = session.withLock({ $0 }) { return known }
        let word = try #require(password.withLock { $0 })
        let made = try await asking { try await $0.signIn("ana", password: word) }
        session.withLock { $0 = made }
        return made
    }

    /// Asks for a payment, as one of many clients: each may ask a user five times a minute.
    func create(_ template: String) async throws -> (txn: SigningID, number: String?) {
        let shop = asked.withLock { asked in
            asked += 1
            return asked % Self.shops
        }
        let key = SystemRandom().uuid()
        let body: JSONValue = [
            "user": "ana", "template": .string(template), "authorization_details": .string(SigningOverHTTP.details),
        ]
        let reply = try await Self.again {
            let fields = ServerFixture.bearer(try await token(shop)) + [("Idempotency-Key", key)]
            return try await send(
                "POST", "transactions", fields + [("Content-Type", "application/json")], text: body.serialized())
        }
        try #require(reply.status == 201, "\(reply.text)")
        return (
            try #require(reply.json["txn"]?.string.flatMap { SigningID(text: $0) }), reply.json["number"]?.string
        )
    }

    private func token(_ shop: Int) async throws -> String {
        if let known = tokens.withLock({ $0[shop] }) { return known }
        let basic = Data("shop\(shop):\(FixtureConfiguration.clientSecret)".utf8).base64EncodedString()
        let reply = try await asking {
            try await $0.send(
                "POST", $0.server + "/oauth2/realms/root/realms/alpha/access_token",
                [("Content-Type", "application/x-www-form-urlencoded"), ("Authorization", "Basic \(basic)")],
                text: ServerFixture.query([("grant_type", "client_credentials"), ("scope", "signing")]))
        }
        let token = try #require(reply.json["access_token"]?.string, "\(reply.text)")
        tokens.withLock { $0[shop] = token }
        return token
    }

    /// What a program must know to call the first node, as its devices and as its user.
    func place() async throws -> JSONValue {
        let node = try await node(0)
        let session = try await signedIn()
        return [
            "iss": .string(name), "connect": .string(String(node.server.dropLast("/am".count))),
            "ca": .string(directory + "/0/data/authority.pem"),
            "fields": .object(
                JSONObject(ServerFixture.session(session).map { JSONObject.Member(name: $0.0, value: .string($0.1)) })),
        ]
    }

    /// A device with the PIN 2580 that may approve. It repeats each call that a killed node has not answered.
    func enrolled() async throws -> (device: TestDevice, container: TestDevice.Enrolled, pin: TestPIN) {
        let invite = try await ask("POST", "invites", [:])
        try #require(invite.status == 201, "\(invite.text)")
        let pid = try #require(invite.json["pid"]?.string)
        let code = try #require(invite.json["code"]?.string.flatMap { InviteCode(typed: $0) })
        let device = try TestDevice(self, modes: [.device, .assisted])
        device.repeats.withLock { $0 = { $0 is LostReply } }
        let (container, pin) = try await device.enrol(code, pin: "2580")
        _ = try await ask("POST", "invites/\(pid)/digits", ["digits": .string(container.digits)])
        try #require(await device.status(container.did).state == .active)
        return (device, container, pin)
    }
}

extension SigningNodes {
    private static let shops = Soak.isOn ? 200 : 40

    private static var yaml: String {
        let clients = (0..<shops).map { number in
            """
                  shop\(number):
                    name: Example Shop
                    secretHash: \(OAuthClient.hash(ofSecret: Secret(FixtureConfiguration.clientSecret)))
                    grantTypes: [client_credentials]
                    scopes: [signing]

            """
        }.joined()
        return """
            development: true
            publicURL: https://localhost:8443/am
            listen: {host: 127.0.0.1, port: 0}
            dataDirectory: data
            passwordCost: 1024
            realms:
              alpha:
                defaultJourney: Quick
                users: [{username: ana, credentials: generated}]
                signing:
                  name: Bank of Example
                  devices: 20
                  freshSeconds: 3600
                  policies:
                    pin:
                      mode: assisted
                      kdf: "$scrypt$ln=14,r=8,p=1"
                      password: {minLength: 4}
                      lock: {max: 5, cap: 20, delays: []}
                  keys:
                    - {usage: sign, label: payments, policy: pin}
                  templates:
                    payment: {title: Confirm payment, ttl: 600, notShown: [/]}
                    numbered: {title: Confirm payment, ttl: 600, match: number, notShown: [/]}
                journeys:
                  Quick:
                    entry: credentials
                    nodes:
                      credentials:
                        type: PageNode
                        config: {nodes: [{type: UsernameCollectorNode}, {type: PasswordCollectorNode}]}
                        outcomes: {outcome: check}
                      check: {type: DataStoreDecisionNode, outcomes: {"true": success, "false": failure}}
                clients:
                  bank-app: {redirectURIs: ["http://127.0.0.1/callback"], scopes: [openid], idTokenAlgorithm: ES256}
            \(clients)
                policySets:
                  bank:
                    policies:
                      - name: read
                        resources: ["https://localhost:*/accounts"]
                        actionValues: {GET: true}
                        subject: {type: AuthenticatedUsers}
            gateway:
              publicURL: https://localhost:9443
              port: 0
              routes: [{name: bank, upstream: "http://127.0.0.1:9", realm: alpha, policySet: bank}]
            """
    }
}
#endif
