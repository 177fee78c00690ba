public import AssentAuthorization
import AssentCore
public import AssentSigning

extension Assent {
    /// What a new PIN must be like, as the server tells it in the device configuration: for a screen that is drawn
    /// before the user is enrolled. What counts are the rules that an enrolment asks with.
    ///
    /// ```swift
    /// let rules = try await assent.pinRules()
    /// let digits = rules?.minLength
    /// ```
    ///
    /// - Returns: the rules; `nil` without a trust file, where the server has never told them, or where no PIN signs
    ///   users in.
    /// - Throws: `ResourceError` with code `storageLocked` when the vault cannot be read, `integrityFailed` when a
    ///   probe refuses to ask the server.
    public func pinRules() async throws(ResourceError) -> PasswordRules? {
        guard let told = network.told else { return nil }
        do throws(HTTPTransportError) {
            try integrity.examine()
        } catch {
            throw ResourceError(error, .generic)
        }
        do {
            return try await told.pinRules()
        } catch {
            throw ResourceError(.generic, .storageLocked, "The vault cannot be read.")
        }
    }
}
