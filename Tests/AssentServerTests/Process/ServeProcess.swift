import AssentCore
import AssentStore
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import TestSupport
import Testing

@testable import AssentServer

/// The real `assent serve` as a process of its own, as an operator runs it.
final class ServeProcess: Sendable {
    let process: WatchedProcess
    let server: String
    /// Where its gateway is, if it has one.
    let gateway: String?
    let password: String?
    /// The issuers that it has printed.
    let issuers: [String]
    private let client: HTTPClient

    /// Starts a server on `directory`, which has `assent.yaml`, and waits until it says where it is.
    ///
    /// - Throws: ``ProcessFailure`` when it ends before that, and for a configuration without a public client: then it
    ///   says nothing after its last account by which one could know that there are no more.
    static func start(
        directory: String, prefix: [String] = [], options: [String] = [], client: HTTPClient
    ) async throws -> ServeProcess {
        let configuration = try? ServerConfiguration.load(file: directory + "/assent.yaml")
        guard configuration.map({ $0.firstPublicClient != nil }) ?? true else {
            throw ProcessFailure(description: "The configuration of a server that a test starts needs a public client.")
        }
        let process = try WatchedProcess.start(
            prefix + command(directory: directory) + options, environment: patience)
        var password: String?
        var issuers: [String] = []
        while let line = await process.nextLine() {
            let words = line.split(separator: " ").map(String.init)
            if words.first == "password" { password = words.last }
            if words.first == "Issuer:" { issuers += words.dropFirst().prefix(1) }
            if line.hasPrefix("Next, in another terminal") { break }
        }
        // The ports in the public URLs are a load balancer's where there are several nodes.
        await process.waitUntilSaid(" serving")
        guard let server = port("port", in: process.errors) else {
            await process.stop()
            throw ProcessFailure(description: "assent serve did not start: \(process.errors)")
        }
        return ServeProcess(
            process: process, server: "https://localhost:\(server)/am",
            gateway: port("gatewayPort", in: process.errors).map { "https://localhost:\($0)" }, password: password,
            issuers: issuers, client: client)
    }

    /// The environment of a program whose calls may take long, and of a server whose stop still records what became of
    /// requests, however busy the machine is.
    static let patience = ["ASSENT_LEAST_SECONDS": "\(Patience.seconds)"]

    private static func port(_ name: String, in log: String) -> Int? {
        let words = log.split(whereSeparator: \.isWhitespace)
        return words.first { $0.hasPrefix("\(name)=") }.flatMap { Int($0.dropFirst(name.count + 1)) }
    }

    static func command(directory: String) throws -> [String] {
        [try WatchedProcess.product("assent"), "serve", "--config", directory + "/assent.yaml"]
    }

    private init(
        process: WatchedProcess, server: String, gateway: String?, password: String?, issuers: [String],
        client: HTTPClient
    ) {
        self.process = process
        self.server = server
        self.gateway = gateway
        self.password = password
        self.issuers = issuers
        self.client = client
    }

    /// What this asks once must arrive once.
    static func makeClient() -> HTTPClient { .forTests(connections: 32, repeats: false) }

    func send(
        _ method: String, _ url: String, _ fields: [(String, String)] = [], text: String? = nil,
        body: [UInt8]? = nil
    ) async throws -> Answer {
        var request = HTTPClientRequest(url: url)
        request.method = HTTPMethod(rawValue: method)
        for (name, value) in fields { request.headers.add(name: name, value: value) }
        if let text { request.body = .bytes(ByteBuffer(string: text)) }
        if let body { request.body = .bytes(ByteBuffer(bytes: body)) }
        let reply = try await client.execute(request, timeout: .seconds(Int64(Patience.seconds)))
        let bytes = try await reply.body.collect(upTo: 8 << 20)
        return Answer(status: Int(reply.status.code), fields: reply.headers, bytes: Array(bytes.readableBytesView))
    }

    /// Signs in with the password alone.
    func signIn(_ username: String, password: String) async throws -> String {
        let reply = try await journey([("authIndexType", "service"), ("authIndexValue", "Quick")]) { type in
            switch type {
            case "NameCallback": .string(username)
            case "PasswordCallback": .string(password)
            default: nil
            }
        }
        return try #require(reply.json["tokenId"]?.string)
    }

    /// Tries a wrong password.
    func guess(_ username: String) async throws -> Answer {
        try await journey([("authIndexType", "service"), ("authIndexValue", "Quick")]) { type in
            switch type {
            case "NameCallback": .string(username)
            case "PasswordCallback": "wrong"
            default: nil
            }
        }
    }

    /// Approves a transaction.
    func approve(_ id: String, session: String) async throws -> Answer {
        let xml =
            #"<Advices><AttributeValuePair><Attribute name="TransactionConditionAdvice"/><Value>\#(id)</Value></AttributeValuePair></Advices>"#
        return try await journey(
            [("authIndexType", "composite_advice"), ("authIndexValue", xml)], ServerFixture.session(session)
        ) { $0 == "ConfirmationCallback" ? 0 : nil }
    }

    /// One transfer, with or without the transaction that it needs.
    func transfer(to payee: String, session: String, transaction: String? = nil) async throws -> Answer {
        let query = transaction.map { "?_txid=\($0)" } ?? ""
        return try await send(
            "POST", try #require(gateway) + "/transfers" + query,
            ServerFixture.jsonFields + ServerFixture.session(session),
            text: #"{"to":"\#(payee)","amount":"0.01","currency":"EUR"}"#)
    }

    private func journey(
        _ query: [(String, String)], _ fields: [(String, String)] = [], _ answer: (String) -> JSONValue?
    ) async throws -> Answer {
        let url = server + "/json/realms/root/realms/alpha/authenticate"
        var reply = try await send("POST", url + "?" + ServerFixture.query(query), fields)
        for _ in 0..<4 {
            guard reply.json["authId"] != nil else { return reply }
            reply = try await send(
                "POST", url, fields + [("Content-Type", "application/json")],
                text: ServerFixture.filled(reply.json, answer).serialized())
        }
        return reply
    }

    /// What lets a busy machine take its time with a service, in a route.
    static let timeouts = "timeouts: {connectSeconds: 60, headSeconds: 3600, silenceSeconds: 3600}"

    /// A configuration for such a process. It goes by the machine's clock, so nothing in it is over soon.
    static func yaml(upstream: Int, serverPort: Int = 0, gatewayPort: Int = 0) -> String {
        """
        development: true
        publicURL: https://localhost:\(serverPort)/am
        listen: {host: 127.0.0.1, port: \(serverPort)}
        dataDirectory: data
        passwordCost: 1024
        drainSeconds: 600
        transactionsPerMinute: 10000
        journeyStartsPerMinute: 100000
        realms:
          alpha:
            defaultJourney: Quick
            users: [{username: ana, credentials: generated}]
            journeys:
              Quick:
                entry: credentials
                nodes:
                  credentials:
                    type: PageNode
                    config: {nodes: [{type: UsernameCollectorNode}, {type: PasswordCollectorNode}]}
                    outcomes: {outcome: check}
                  check: {type: DataStoreDecisionNode, outcomes: {"true": success, "false": failure}}
              Nod:
                entry: approve
                transactionalOnly: true
                nodes:
                  approve: {type: TransactionApprovalNode, outcomes: {approve: success, decline: failure}}
            clients:
              bank-app: {redirectURIs: ["http://127.0.0.1/callback"], scopes: [openid], idTokenAlgorithm: ES256}
            policySets:
              bank:
                policies:
                  - name: pay
                    resources: ["https://localhost:*/transfers"]
                    actionValues: {POST: true}
                    subject: {type: AuthenticatedUsers}
                    condition: {type: Transaction, strategySpecifier: Nod, ttl: 3600}
                    bind: [method, query, body]
        gateway:
          publicURL: https://localhost:\(gatewayPort)
          port: \(gatewayPort)
          routes: [{name: bank, upstream: "http://127.0.0.1:\(upstream)", realm: alpha, policySet: bank, \(timeouts)}]
        """
    }
}
