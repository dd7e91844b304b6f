"""Addresses of annotation: projects, items and gold for managers."""

from django.urls import URLPattern, path

from annotation.views import gold, items, manage

urlpatterns: list[URLPattern] = [
    path("", manage.project_list, name="projects"),
    path("new/", manage.create, name="create"),
    path("<int:pk>/settings/", manage.settings, name="settings"),
    path("<int:pk>/settings/targets/", manage.targets, name="targets"),
    path("<int:pk>/settings/guidelines/", manage.guidelines, name="guideline_versions"),
    path("<int:pk>/members/", manage.members, name="members"),
    path("<int:pk>/members/<int:member>/", manage.member, name="member"),
    path("<int:pk>/move/", manage.move, name="move"),
    path("<int:pk>/items/", items.item_list, name="items"),
    path("<int:pk>/items/change/", items.change, name="items_change"),
    path("<int:pk>/items/add/", items.add_pairs, name="add_pairs"),
    path("<int:pk>/items/<slug:item>/", items.item, name="item"),
    path("<int:pk>/items/<slug:item>/gold/", gold.make, name="make_gold"),
    path("<int:pk>/items/<slug:item>/retire/", gold.retire, name="retire_gold"),
    path("<int:pk>/gold/", gold.gold_list, name="gold"),
    path("<int:pk>/gold/propose/", gold.propose, name="propose_gold"),
]
