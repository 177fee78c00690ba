import AssentCore
import AssentSigningProtocol
import HTTPTypes

/// Calls of a user who is signed in at the issuer, by a transport that has the user's session.
struct InviteCalls: Sendable {
    let http: SigningHTTP
    let issuer: String

    /// Makes an invite for the user.
    ///
    /// - Throws: ``SigningError``, for example with code `freshAuthenticationRequired`; what the transport throws.
    func invite() async throws -> SigningInvite {
        let reply = try await send(.post, IssuerPath.invites.path(), [:], expecting: 201)
        guard let text = (try? JSONValue.parse(reply.body))?["qr"]?.string,
            let invite = try? SigningInvite(scanned: text), StrictJSON.same(invite.issuer, issuer)
        else { throw SigningError(.serverAuthentication, "The server's reply is not an invite.") }
        return invite
    }

    /// Says which digits this device has computed.
    ///
    /// - Throws: ``SigningError``, for example with code `digitsWrong`; what the transport throws.
    func send(digits: String, of pid: SigningID) async throws {
        _ = try await send(.post, IssuerPath.digits.path(pid.text), ["digits": .string(digits)])
    }

    /// Ends an invite, and a container of it that is not active.
    func withdraw(_ pid: SigningID) async throws {
        _ = try await send(.delete, IssuerPath.invite.path(pid.text), expecting: 204)
    }

    private func send(
        _ method: HTTPRequest.Method, _ path: String, _ content: JSONValue? = .none, expecting status: Int = 200
    ) async throws -> SigningHTTP.Reply {
        let body = content.map { HTTPBody($0.serializedBytes()) }
        var fields = Self.fields
        if body != nil { fields[.contentType] = "application/json" }
        let call = try HTTPCall(
            method, url: issuer + path, headerFields: fields, body: body, limits: http.limits)
        let reply = try await http.send(call, expecting: status)
        if let problem = reply.problem { throw problem }
        return reply
    }

    /// What no browser adds to another site's form: the server wants it beside the session's cookie.
    private static var fields: HTTPFields {
        guard let name = HTTPField.Name("X-Requested-With") else { return [:] }
        return [name: "assent"]
    }
}
