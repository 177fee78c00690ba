"""Which texts may be shown to a user."""
import unicodedata

# Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties.txt, as far as the categories below leave it.
IGNORABLE = [(0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164),
             (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)]
REFUSED = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def can_be_shown(text):
    marks = 0
    for at, character in enumerate(text):
        number = ord(character)
        category = unicodedata.category(character)
        if category in REFUSED or number == 0x2800 or any(low <= number <= high for low, high in IGNORABLE):
            return False
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if marks > 3 or (marks and at == 0):
            return False
    return True
