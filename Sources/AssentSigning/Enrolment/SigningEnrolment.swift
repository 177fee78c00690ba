public import AssentSigningProtocol

/// An enrolment that the server knows, and that its user has to finish by typing the digits.
public struct SigningEnrolment: Sendable, Hashable {
    /// The container's id.
    public let containerID: String

    /// The issuer's name, to be shown with the digits.
    public let issuerName: String

    /// The user's name, to be shown with the digits.
    public let userName: String

    /// The digits that the user types into the page that made the invite, in two groups of four; `nil` when the issuer
    /// asks for none. The page does not show them: a user who only compares says yes without looking.
    public let digits: String?

    /// The container's state.
    public let state: ContainerState
}
