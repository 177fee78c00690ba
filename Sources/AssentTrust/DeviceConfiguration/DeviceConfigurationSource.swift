import AssentCore
import AssentSigningProtocol
import HTTPTypes

/// Asks the server: first the issuer's metadata, which says where, then for the document.
struct DeviceConfigurationSource: Sendable {
    /// What came of a question that was answered.
    enum Reply: Sendable {
        case answer(DeviceConfigurationAnswer)
        /// The realm tells nothing, or has no such app.
        case untold
        /// What no server should say.
        case unusable(status: Int)
    }

    private static let limits = HTTPLimits(
        connect: .seconds(5), read: .seconds(5), total: .seconds(10), replyBytes: DeviceConfigurationContent.limit)

    let issuer: String
    let app: ConfiguredApp
    let transport: any HTTPTransport

    func answer(knowing tag: String?) async -> DeviceConfigurationAnswer {
        guard case .answer(let answer)? = try? await reply(knowing: tag) else { return .failed }
        return answer
    }

    /// The same, with the reason where there is no document.
    ///
    /// - Throws: what carries the question throws.
    func reply(knowing tag: String?) async throws -> Reply {
        let place = IssuerEndpoint("assent_device_config_endpoint", of: issuer)
        guard let endpoint = try await place.find(over: transport, limits: Self.limits) else { return .untold }
        var fields: HTTPFields = [:]
        fields[.ifNoneMatch] = tag
        let reply = try await transport.send(
            HTTPCall(.get, url: question(endpoint), headerFields: fields, limits: Self.limits))
        switch reply.status {
        case 200:
            let bytes = try await reply.body.collect(upTo: DeviceConfigurationContent.limit)
            guard let text = String(validating: bytes, as: UTF8.self) else { return .unusable(status: 200) }
            return .answer(.document(text, tag: reply.response.headerFields[.eTag]))
        case 304: return .answer(.unchanged)
        case 404: return .untold
        default: return .unusable(status: reply.status)
        }
    }

    private func question(_ endpoint: String) -> String {
        let parts = app.audience.split(separator: "/").map(String.init)
        let items = [("app", parts.first ?? ""), ("version", app.version), ("platform", parts.dropFirst().first ?? "")]
        return items.reduce(endpoint) { URLText.appending($1.0, $1.1, to: $0) }
    }
}
