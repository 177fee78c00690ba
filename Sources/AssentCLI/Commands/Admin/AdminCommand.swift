import ArgumentParser
import Assent
import Foundation
import HTTPTypes

/// `assent admin`
struct AdminCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "admin", abstract: "Administer the server as the user who is signed in.",
        subcommands: [
            Bootstrap.self, Roles.self, RegistrationsCommand.self, Keys.self,
            PayloadKeysCommand.self, SigningKeys.self, Devices.self,
            Audit.self, ReportsCommand.self,
            HashPasswordCommand.self,
        ])

    /// `assent admin bootstrap`
    struct Bootstrap: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "bootstrap",
            abstract: "Become the first administrator, with the token that 'assent serve' has put into a file.")

        @OptionGroup var client: ClientOptions

        @Option(name: .long, help: "The file with the token.", completion: .file())
        var tokenFile: String

        func run() async throws {
            try await AdminCall(client).post("bootstrap") {
                let token = try SecretSource.read(file: tokenFile, descriptor: nil, "the token of 'assent serve'")
                return ["token": .string(token?.reveal() ?? "")]
            }
            try? FileManager.default.removeItem(atPath: tokenFile)
        }
    }

    /// `assent admin roles`
    struct Roles: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "roles", abstract: "Give a user exactly these roles.")

        @OptionGroup var result: ResultOptions

        @OptionGroup var client: ClientOptions

        @Argument(help: "The user's name.")
        var username: String

        @Argument(help: "admin, auditor, pep: one or several, which are all that the user then has.")
        var roles: [String] = []

        @Flag(name: .long, help: "Take all roles from the user.")
        var none = false

        func validate() throws {
            guard roles.isEmpty == none else {
                throw ValidationError(
                    none
                        ? "--none takes all roles: name none beside it."
                        : "Name the roles that \(username) is to have, or say --none, which takes all of them. "
                            + "'assent users list' shows those that there are.")
            }
        }

        func run() async throws {
            try await AdminCall(client, console: result.console).post(
                "setRoles", ["username": .string(username), "roles": .array(roles.map { .string($0) })])
        }
    }

    /// `assent admin keys`
    struct Keys: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "keys",
            abstract: "The server's signing keys.", subcommands: [Rotate.self])
    }

    /// `assent admin keys rotate`
    struct Rotate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rotate",
            abstract: "Make new signing keys. Signatures of the old keys stay valid until they expire.")

        @OptionGroup var client: ClientOptions

        @Option(name: .long, help: "Only the keys of id_token, access_token or gateway_identity.")
        var purpose: String?

        @Flag(name: .long, help: "Someone else may have a key: what the old keys signed becomes invalid at once.")
        var discardOld = false

        func validate() throws {
            guard purpose.map({ ["id_token", "access_token", "gateway_identity"].contains($0) }) ?? true else {
                throw ValidationError("--purpose is id_token, access_token or gateway_identity.")
            }
        }

        func run() async throws {
            var body: [JSONObject.Member] = [.init(name: "discardOld", value: .bool(discardOld))]
            if let purpose { body.append(.init(name: "purpose", value: .string(purpose))) }
            try await AdminCall(client).post("rotateKeys", .object(JSONObject(body)))
        }
    }

    /// `assent admin audit`
    struct Audit: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "audit",
            abstract: "Print audit records as JSON, one a line, newest first.",
            discussion: """
                With --follow they are printed as they are written, oldest first, until Ctrl-C. Wrong passwords and codes are \
                password.verify and otp.verify, with the client's address and, for users who exist, the name.

                Example:  assent admin audit --follow | grep --line-buffered '"outcome":"refused"'
                          assent admin audit --user ana --event password.verify --since 24h
                """)

        @OptionGroup var client: ClientOptions

        // The id of a signed transaction may begin with a hyphen.
        @Option(name: .long, parsing: .unconditional, help: "Only those of a transaction, oldest first.")
        var transaction: String?

        @Option(name: .long, help: "Only those about a user, by name or id.")
        var user: String?

        @Option(name: .long, help: "Only those of an event, for example transaction.take.")
        var event: String?

        @Option(
            name: .long,
            help: "Only those from a time on: 2026-03-01, 2026-03-01T12:00:00Z, or how long ago: 30m, 24h, 7d.")
        var since: String?

        @Option(name: .long, help: "How many, at most 1000.")
        var limit = 50

        @Flag(name: .shortAndLong, help: "Go on with new records as they are written.")
        var follow = false

        func validate() throws {
            guard (1...1000).contains(limit) else { throw ValidationError("--limit is from 1 to 1000.") }
            guard !follow || transaction == nil else {
                throw ValidationError("--follow shows records as they come, not those of one transaction.")
            }
            guard transaction == nil || (user == nil && event == nil && since == nil) else {
                throw ValidationError(
                    "--transaction names all records of one transaction: leave the other options out.")
            }
            guard since == nil || Self.time(since, now: Date()) != nil else {
                throw ValidationError("--since is a date, a time in UTC, or 30m, 24h, 7d.")
            }
        }

        /// A time that was given as one, or as how long ago it is, in seconds since 1970.
        static func time(_ text: String?, now: Date) -> Int64? {
            guard let text else { return nil }
            let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86400]
            if let unit = text.last.flatMap({ units[$0] }), let count = Int64(text.dropLast()),
                (0...1_000_000).contains(count)
            {
                return Int64(now.timeIntervalSince1970) - count * unit
            }
            let date =
                (try? Date(text, strategy: .iso8601))
                ?? (try? Date(text, strategy: .iso8601.year().month().day()))
            return date.map { Int64($0.timeIntervalSince1970) }
        }

        func run() async throws {
            var filter = ""
            if let user { filter = URLText.appending("user", user, to: filter) }
            if let event { filter = URLText.appending("event", event, to: filter) }
            if let since = Self.time(since, now: Date()) { filter = URLText.appending("since", "\(since)", to: filter) }
            // Each path has a query already.
            filter = filter.isEmpty ? "" : "&" + filter.dropFirst()
            if follow { return try await AdminCall(client).followAudit(from: limit, filter: filter) }
            try await AdminCall(client).audit(transaction: transaction, limit: limit, filter: filter)
        }
    }
}

/// A call to the server itself with the user's session.
struct AdminCall {
    private let client: ClientOptions
    private let console: Console

    init(_ client: ClientOptions, console: Console = Console()) {
        self.client = client
        self.console = console
    }

    /// Posts members that are not secret, and prints them for a script.
    func post(_ action: String, _ body: JSONValue) async throws {
        try await post(action) { body }
        if console.json { console.emit(body) }
        try console.finish()
    }

    /// Posts what is only read when the command has begun: its errors are the command's.
    func post(_ action: String, _ body: () throws -> JSONValue) async throws {
        _ = try await SessionCalls(client, console: console).administer(action, body)
        console.say("Done.")
        try console.finish()
    }

    func audit(transaction: String?, limit: Int, filter: String) async throws {
        var path = "audit?limit=\(limit)\(filter)"
        if let transaction { path = URLText.appending("transaction", transaction, to: path) }
        try emit(try await send { .get(path) }["result"])
    }

    /// Prints the newest records, and then each one soon after it was written.
    func followAudit(from limit: Int, filter: String) async throws {
        try await SessionCalls(client, console: console).run { send in
            let follower = AuditFollower(
                fetch: { path in try await send(200) { .get("\($0("json"))/\(path)\(filter)") }["result"]?.array ?? []
                },
                wait: { try await Task.sleep(for: .seconds(2)) },
                now: { Int64(Date().timeIntervalSince1970 * 1_000_000) }, show: console.emit)
            try await follower.run(newest: limit) { try console.finish() }
        }
    }

    /// What the user has agreed to, one consent a line.
    func consents() async throws {
        try emit(try await send { .get("consents") }["result"])
    }

    private func emit(_ list: JSONValue?) throws { try SessionCalls(client, console: console).emit(list) }

    func withdrawConsent(to client: String) async throws {
        _ = try await send { .post("consents?_action=withdraw", json: ["clientId": .string(client)]) }
        console.say("Done: the access of \(DisplayText.escapedForTerminal(client)) has ended.")
        try console.finish()
    }

    private func send(_ makeCall: @escaping () throws -> ResourceRequest) async throws -> JSONValue {
        try await SessionCalls(client, console: console).send { below in
            var call = MutableResourceRequest(try makeCall())
            call.path = "\(below("json"))/\(call.path)"
            return call.immutable
        }
    }
}
