import ArgumentParser
import Assent
import AssentSigningProtocol
import Foundation
import HTTPTypes

/// Calls of the server's own interfaces with the session of a profile.
struct SessionCalls {
    let console: Console
    private let client: ClientOptions

    init(_ client: ClientOptions, console: Console = Console()) {
        self.client = client
        self.console = console
    }

    /// Sends one call and returns the reply's JSON. An answer with another status is the command's failure.
    ///
    /// - Parameters:
    ///   - status: the status of success.
    ///   - makeCall: makes the call; it is given the URL of an interface in the profile's realm, by its name.
    /// - Returns: the reply's JSON.
    /// - Throws: `ExitCode`, after the reason was written.
    func send(
        expecting status: Int = 200, _ makeCall: @escaping ((String) -> String) throws -> ResourceRequest
    ) async throws -> JSONValue {
        var answer = JSONValue.null
        try await run { send in answer = try await send(status, makeCall) }
        return answer
    }

    /// The address of one of the server's interfaces in the profile's realm.
    func address(of interface: String) throws -> String {
        let file = try client.load().file
        return "\(file.server)/\(interface)/\(try JourneyRealm(file.realm).path)"
    }

    /// Sends one call and returns the reply's JSON, as ``send(expecting:_:)`` does.
    typealias Sender = (
        _ status: Int, _ makeCall: @escaping ((String) -> String) throws -> ResourceRequest
    ) async throws -> JSONValue

    /// Does what needs several calls with the session. The vault is opened once.
    ///
    /// - Throws: `ExitCode`, after the reason was written.
    func run(_ body: (@escaping Sender) async throws -> Void) async throws {
        try await Outcome.run(console) {
            var profile = try client.load()
            guard !profile.file.isProviderOnly else {
                throw CommandFailure(
                    "The configuration names an issuer and no server, and other providers do not have this.")
            }
            let realm = try JourneyRealm(profile.file.realm)
            profile.file.resources.append(
                .init(origin: try Origin(profile.file.server).description, credential: "session"))
            let assent = try profile.assent()
            let server = profile.file.server
            do {
                try await body { status, makeCall in
                    var call = MutableResourceRequest(try makeCall { "\(server)/\($0)/\(realm.path)" })
                    if let name = HTTPField.Name("X-Requested-With") { call.headers[name] = "assent" }
                    // The file says where the server is, and whether calls to it are sealed.
                    call.allowsUnsealed = true
                    let reply = try await assent.send(call.immutable)
                    return try await Self.answer(reply, expecting: status)
                }
            } catch {
                await assent.shutdown()
                throw error
            }
            await assent.shutdown()
        }
    }

    /// Asks the server's administration for a change, or for what it knows.
    ///
    /// - Parameters:
    ///   - action: the action's name.
    ///   - body: what is sent. It is read when the command has begun: its errors are the command's.
    /// - Returns: the reply's JSON.
    /// - Throws: `ExitCode`, after the reason was written.
    func administer(_ action: String, _ body: () throws -> JSONValue) async throws -> JSONValue {
        var answer = JSONValue.null
        try await run { send in
            let body = try body()
            answer = try await send(200) { .post("\($0("json"))/administration?_action=\(action)", json: body) }
        }
        return answer
    }

    /// Asks the server's administration for a list, one page after the other, and shows each element.
    ///
    /// - Parameters:
    ///   - action: the action's name.
    ///   - name: the member of an element after which the next page begins.
    ///   - members: what else is sent with each question.
    ///   - show: shows an element.
    /// - Throws: `ExitCode`, after the reason was written.
    func list(
        _ action: String, by name: String, _ members: JSONObject = JSONObject(), show: (JSONValue) -> Void
    ) async throws {
        try await run { send in
            var last = ""
            while true {
                var body = members
                body["after"] = .string(last)
                body["limit"] = .integer(Self.page)
                let asked = JSONValue.object(body)
                let listed =
                    try await send(200) {
                        .post("\($0("json"))/administration?_action=\(action)", json: asked)
                    }["result"]?.array ?? []
                for element in listed { show(element) }
                if listed.isEmpty, last.isEmpty { console.tellEmptyList() }
                guard listed.count == Self.page, let next = listed.last?[name]?.string, next != last else { return }
                last = next
            }
        }
        try console.finish()
    }

    /// How many elements a page has.
    private static let page = 500

    /// Prints what a reply lists as JSON, one element a line.
    ///
    /// - Throws: `ExitCode`, after the reason was written.
    func emit(_ list: JSONValue?) throws {
        let elements = list?.array ?? []
        for element in elements { console.emit(element) }
        if elements.isEmpty { console.tellEmptyList() }
        try console.finish()
    }

    /// The most bytes of an answer: nothing is longer than a bundle of evidence.
    static let limit = EvidenceBundle.limit

    /// The JSON of a reply with the status of success.
    static func answer(_ reply: HTTPReply, expecting status: Int) async throws -> JSONValue {
        let bytes = try await reply.body.collect(upTo: limit)
        guard reply.status == status else {
            // What stands in front of the server, and answers for it, writes pages.
            throw refusal(reply.status, of: (try? parsed(bytes)) ?? .null)
        }
        return try parsed(bytes)
    }

    private static func parsed(_ bytes: [UInt8]) throws -> JSONValue {
        try JSONValue.parse(bytes, limits: JSONLimits(bytes: limit))
    }

    /// What people read of a call that was refused with this body.
    static func refusal(_ status: Int, of answer: JSONValue) -> CommandFailure {
        // AM's interfaces say what is wrong in one member, problem documents (RFC 9457) in another.
        let reason = answer["message"]?.string ?? answer["detail"]?.string
        if answer["code"]?.string == SigningErrorCode.freshAuthenticationRequired.rawValue {
            // Not about what this user may do: the same user may after a new sign-in.
            return CommandFailure(
                "The server refused: for this the sign-in is too long ago, or too weak. Sign in again: assent login "
                    + "(status \(status))",
                status: .refused)
        }
        guard status == 503, answer["detail"]?["reason"]?.string == JourneyError.Code.outcomeUnknown.rawValue else {
            return refusal(status, reason)
        }
        return CommandFailure(
            "The outcome is unknown: \(reason ?? "the server does not say more.")", status: .unknown)
    }

    /// What people read of a call that was refused. The server's words alone may be AM's "Access Denied".
    static func refusal(_ status: Int, _ reason: String?) -> CommandFailure {
        let own = reason.map { $0.hasSuffix(".") ? $0 : $0 + "." }
        let words =
            switch status {
            case 401: ["The server refused: the session has ended.", own, "Sign in again: assent login"]
            case 403: ["The server refused: this user may not do that.", own]
            case 429: ["The server refused: it was asked too often.", own, "Wait a moment and try again."]
            case 500...: ["The server could not answer.", own, "Try again, and look at its log."]
            default: ["The server refused: \(own ?? "it gave no reason.")"]
            }
        let said = words.compactMap(\.self).joined(separator: " ") + " (status \(status))"
        return CommandFailure(said, status: status < 500 ? .refused : .failed)
    }
}
