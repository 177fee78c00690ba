import AssentCore
import AssentJOSE
import HTTPTypes

/// The requests of a registration and their answers (RFC 7591 §3, RFC 7592 §2); it keeps nothing. Each request has a
/// proof by the installation's own key.
struct RegistrationWire: Sendable {
    let exchange: ProviderExchange
    let metadata: MetadataCache
    let proofs: ProofMaker

    /// Where installations register.
    func endpoint() async throws -> String {
        guard let url = try await metadata.metadata().registrationEndpoint else {
            throw ProviderMetadata.missing("registration_endpoint")
        }
        return url
    }

    /// Registers a key.
    ///
    /// - Returns: the server's answer, not looked at yet.
    /// - Throws: ``TokenError``: `registrationUnknown` when the server may have registered it. With another code it has
    ///   not done so in answer to the last copy of the request; ``TokenError/mayHaveRegistered(hadToken:)`` says
    ///   whether an earlier copy may have had that effect.
    func register(
        _ key: ClientKey, named name: String, at endpoint: String, _ settings: RegistrationConfiguration,
        _ configuration: TokenConfiguration
    ) async throws -> JSONObject {
        var fields = HTTPFields()
        if let token = settings.initialAccessToken { fields[.authorization] = TokenScheme.bearer.field(token) }
        let target = ProofMaker.Target(method: .post, url: endpoint, role: .authorizationServer)
        let reply: ProviderExchange.Reply
        do {
            reply = try await send(
                target, ProofKey(client: key, name: name), fields,
                json: .object(Self.request(key, settings, configuration)))
        } catch let error as TokenError where error.transportError.map(Self.mayHaveArrived) == true {
            throw TokenError.registrationUnknown(error)
        } catch is CancellationError {
            throw TokenError.registrationUnknown(nil)
        }
        guard reply.status == 201 else {
            throw RegistrationRefusal(reply).error(hadToken: settings.initialAccessToken != nil)
        }
        guard let object = reply.object else { throw TokenError.registrationUnknown(nil, status: reply.status) }
        return object
    }

    /// Whether the server may have got the request: also where it answered, and nobody can read what.
    private static func mayHaveArrived(_ error: HTTPTransportError) -> Bool {
        error.mayHaveHadEffect || [.bodyTooLarge, .headerTooLarge, .malformedReply].contains(error.code)
    }

    /// Replaces what is registered by what the configuration asks for now (RFC 7592 §2.2). It has the same effect
    /// however often it is sent.
    ///
    /// - Returns: the server's answer, not looked at yet; `nil` when the server does not know the registration any
    ///   more.
    /// - Throws: ``TokenError``: `registrationUnknown` when the server may have changed it; with every other code it
    ///   has not.
    func update(
        _ instance: RegisteredInstance, key: ClientKey, _ settings: RegistrationConfiguration,
        _ configuration: TokenConfiguration
    ) async throws -> JSONObject? {
        var json = Self.request(key, settings, configuration)
        json["client_id"] = .string(instance.clientID)
        let reply: ProviderExchange.Reply
        do {
            reply = try await manage(.put, instance, key, json: .object(json))
        } catch let error as TokenError where error.transportError.map(Self.mayHaveArrived) == true {
            throw TokenError.changeUnknown(error)
        } catch is CancellationError {
            throw TokenError.changeUnknown(nil)
        }
        if Self.saysEnded(reply) { return nil }
        guard reply.status == 200 else { throw RegistrationRefusal(reply).changeError }
        guard let object = reply.object else { throw TokenError.changeUnknown(nil, status: reply.status) }
        return object
    }

    /// Ends a registration. One that the server does not know any more has ended.
    func end(_ instance: RegisteredInstance, key: ClientKey) async throws {
        let reply = try await manage(.delete, instance, key)
        guard ![200, 204].contains(reply.status), !Self.saysEnded(reply) else { return }
        throw RegistrationRefusal(reply).endingError
    }

    /// Whether the server says that it does not know a registration any more. When it says anything else, it may.
    func hasEnded(_ instance: RegisteredInstance, key: ClientKey) async throws -> Bool {
        Self.saysEnded(try await manage(.get, instance, key))
    }

    private func manage(
        _ method: HTTPRequest.Method, _ instance: RegisteredInstance, _ key: ClientKey, json: JSONValue? = nil
    ) async throws -> ProviderExchange.Reply {
        let target = ProofMaker.Target(
            method: method, url: instance.address, role: .authorizationServer, token: instance.token)
        return try await send(
            target, ProofKey(client: key, name: instance.keyName),
            [.authorization: TokenScheme.dpop.field(instance.token)], json: json, isHarmless: true)
    }

    private func send(
        _ target: ProofMaker.Target, _ key: ProofKey, _ fields: HTTPFields, json: JSONValue?, isHarmless: Bool = false
    ) async throws -> ProviderExchange.Reply {
        try await proofs.exchange(target, key: key, isHarmless: isHarmless) { proof in
            var fields = fields
            fields[.dpop] = proof
            return try await exchange.send(target.method, target.url, json: json, fields: fields)
        } read: { reply in
            let asks = [400, 401].contains(reply.status) && reply.oauthError == "use_dpop_nonce"
            return (reply.fields, asks || ResourceRefusal(reply.response) == .nonce)
        }
    }

    /// Only this error says that the client is not there any more: a proof that was refused says nothing of it.
    private static func saysEnded(_ reply: ProviderExchange.Reply) -> Bool {
        guard reply.status == 401 else { return false }
        return ResourceRefusal(reply.response) == .token || reply.oauthError == "invalid_token"
    }

    /// What is asked for (RFC 7591 §2): no more than this installation needs.
    private static func request(
        _ key: ClientKey, _ settings: RegistrationConfiguration, _ configuration: TokenConfiguration
    ) -> JSONObject {
        var json: JSONObject = [
            "software_id": .string(configuration.clientID), "jwks": key.keySet.json,
            "token_endpoint_auth_method": "private_key_jwt",
            "redirect_uris": [.string(configuration.redirectURI)],
            "scope": .string(configuration.registeredScopes.joined(separator: " ")),
        ]
        json["client_name"] = settings.clientName.map(JSONValue.string)
        json["software_version"] = settings.softwareVersion.map(JSONValue.string)
        json["assent_platform"] = settings.platform.map(JSONValue.string)
        json["assent_device_name"] = settings.deviceName.map(JSONValue.string)
        json["software_statement"] = settings.softwareStatement.map { .string($0.reveal()) }
        return json
    }
}
