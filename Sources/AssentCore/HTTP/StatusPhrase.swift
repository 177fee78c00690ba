package import HTTPTypes

extension HTTPResponse.Status {
    /// The reason phrase of a status code that servers of this package answer with (RFC 9110 §15); empty for others.
    package static func phrase(_ code: Int) -> String {
        answered.first { $0.code == code }?.reasonPhrase ?? ""
    }

    private static let answered: [HTTPResponse.Status] = [
        .ok, .badRequest, .unauthorized, .forbidden, .notFound, .methodNotAllowed, .requestTimeout, .conflict,
        .gone, .contentTooLarge,
        .uriTooLong, .unsupportedMediaType, .tooManyRequests, .internalServerError, .notImplemented, .badGateway,
        .serviceUnavailable, .gatewayTimeout, .upgradeRequired,
    ]
}
