import AssentCore
import AssentPeers
import AssentServer
import Foundation
import HTTPTypes

/// How long the slowest approvals and payments take while eight clients guess passwords, against the same without them.
/// All are at one address, so nothing but the server's own order keeps them apart.
struct GuessingBenchmark: Benchmark {
    static let name = "guessing"
    static let summary = "approvals and payments while eight clients guess passwords against none, 99th percentile"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    private static let guessers = 8
    private static let path = "/json/realms/root/realms/alpha/authenticate"

    private var rounds: Int { setting.rounds(5, quick: 2) }
    private var payments: Int { setting.rounds(300, quick: 40) }

    @concurrent
    func run() async throws -> [Comparison] {
        guard let port = try await Nginx.freePorts(1).first else { throw BenchFailure("no free ports") }
        let upstream = try await Nginx.start(
            "server { listen 127.0.0.1:\(port); location / { return 200 '{}'; } }",
            in: try setting.workspace.directory("bank"), ports: [port])
        defer { upstream.stop() }
        let server = try BenchServer(
            in: try setting.workspace.directory("guessing"), upstream: "http://127.0.0.1:\(port)")
        defer { server.stop() }
        let user = PayingUser(
            url: server.url + Self.path, gatewayPort: server.gatewayPort, session: server.session,
            transport: try server.transport())
        let guesser = PasswordGuesser(url: server.url + Self.path, transport: try server.transport())
        _ = try await measure(user, count: payments / 4)

        var approve = comparison("approve")
        var pay = comparison("pay")
        for _ in 1...rounds {
            let idle = try await measure(user, count: payments)
            let guessed = try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<Self.guessers { group.addTask { try await guesser.guess(for: "user-\(index)") } }
                // The guesses must have begun to hold the threads before anything is measured.
                while await guesser.answers < Self.guessers {
                    try await Task.sleep(for: .milliseconds(20))
                }
                let figures = try await measure(user, count: payments)
                group.cancelAll()
                return figures
            }
            approve.add(subject: guessed.approve, baseline: idle.approve, of: rounds)
            pay.add(subject: guessed.pay, baseline: idle.pay, of: rounds)
        }
        return [approve, pay]
    }

    private func comparison(_ step: String) -> Comparison {
        Comparison(
            benchmark: Self.name, title: "\(step), \(Self.guessers) clients guessing passwords / none, p99", unit: "s",
            aim: .atMost(3))
    }

    /// The 99th percentile of approvals and of payments, in seconds.
    private func measure(_ user: PayingUser, count: Int) async throws -> (approve: Double, pay: Double) {
        let clock = ContinuousClock()
        var approvals: [Double] = []
        var payments: [Double] = []
        for _ in 0..<count {
            let id = try await user.order()
            let start = clock.now
            try await user.approve(id)
            let approved = clock.now
            try await user.pay(id)
            approvals.append((approved - start).inSeconds)
            payments.append((clock.now - approved).inSeconds)
        }
        return (Self.percentile99(approvals), Self.percentile99(payments))
    }

    private static func percentile99(_ values: [Double]) -> Double {
        let sorted = values.sorted()
        return sorted.isEmpty ? .nan : sorted[min(sorted.count - 1, sorted.count * 99 / 100)]
    }
}

/// A user who pays through the gateway.
private struct PayingUser: Sendable {
    /// Where journeys are.
    let url: String
    let gatewayPort: Int
    let session: String
    let transport: any HTTPTransport

    /// Asks for a payment, and returns the transaction that it needs.
    func order() async throws -> String {
        let reply = try await send("https://localhost:\(gatewayPort)/transfers", body: "{}")
        guard let id = try ReceivedAdvice(reply.response)?.advice.transactionID else {
            throw BenchFailure("the payment needs no approval: \(reply.status)")
        }
        return id
    }

    func approve(_ id: String) async throws {
        let page = try await json(url + "?authIndexType=transaction&authIndexValue=\(id)", body: "{}")
        guard var object = page.object, var callbacks = object["callbacks"]?.array else {
            throw BenchFailure("the approval asks nothing")
        }
        callbacks = callbacks.map { callback in
            guard callback["type"] == "ConfirmationCallback", var object = callback.object,
                let name = callback["input"]?.array?.first?["name"]
            else { return callback }
            object["input"] = [["name": name, "value": 0]]
            return .object(object)
        }
        object["callbacks"] = .array(callbacks)
        guard try await json(url, body: JSONValue.object(object).serialized())["tokenId"] != nil else {
            throw BenchFailure("the approval failed")
        }
    }

    func pay(_ id: String) async throws {
        let url = "https://localhost:\(gatewayPort)/transfers?\(WireName.transactionParameter)=\(id)"
        let reply = try await send(url, body: "{}")
        guard reply.status == 200 else { throw BenchFailure("the payment failed: \(reply.status)") }
    }

    private func json(_ url: String, body: String) async throws -> JSONValue {
        try JSONValue.parse(try await send(url, body: body).body.collect(upTo: 1 << 20))
    }

    private func send(_ url: String, body: String) async throws -> HTTPReply {
        try await transport.sendJSON(body, to: url, session: session)
    }
}

/// Somebody who tries passwords.
private actor PasswordGuesser {
    private let url: String
    private let transport: any HTTPTransport

    /// How many guesses were answered, or refused because the server was busy.
    private(set) var answers = 0

    init(url: String, transport: any HTTPTransport) {
        self.url = url
        self.transport = transport
    }

    /// Guesses until it is cancelled.
    func guess(for username: String) async throws {
        while !Task.isCancelled {
            do {
                let start = url + "?authIndexType=service&authIndexValue=Password"
                let first = try await transport.sendJSON("{}", to: start).body.collect(upTo: 1 << 20)
                guard var object = try JSONValue.parse(first).object, let callbacks = object["callbacks"]?.array else {
                    throw BenchFailure("the sign-in asks nothing")
                }
                object["callbacks"] = .array(
                    callbacks.map { callback in
                        guard var object = callback.object, let name = callback["input"]?.array?.first?["name"] else {
                            return callback
                        }
                        object["input"] = [["name": name, "value": .string(username)]]
                        return .object(object)
                    })
                let reply = try await transport.sendJSON(JSONValue.object(object).serialized(), to: url)
                _ = try await reply.body.collect(upTo: 1 << 20)
                guard reply.status == 401 || reply.status == 503 else {
                    throw BenchFailure("a guess is answered with \(reply.status)")
                }
                answers += 1
            } catch  where Task.isCancelled {
                return
            }
        }
    }
}

extension HTTPTransport {
    /// Sends a JSON body, with a session where there is one.
    fileprivate func sendJSON(_ body: String, to url: String, session: String? = nil) async throws -> HTTPReply {
        var fields: HTTPFields = [.contentType: "application/json"]
        if let session, let name = HTTPField.Name(WireName.sessionCookie) { fields[name] = session }
        return try await send(HTTPCall(.post, url: url, headerFields: fields, body: HTTPBody(body)))
    }
}
