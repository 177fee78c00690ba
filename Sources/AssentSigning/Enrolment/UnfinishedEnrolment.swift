/// An enrolment that was interrupted.
public struct UnfinishedEnrolment: Sendable, Hashable, Identifiable {
    /// This device's own name of it.
    public let id: String

    /// The issuer.
    public let issuer: String

    /// The issuer's name; nobody has signed it before the server has answered.
    public let issuerName: String

    init(_ record: ContainerRecord) {
        id = record.id.text
        issuer = record.issuer
        issuerName = record.issuerName
    }
}
